//! `docs/runbook`: a page for each code that blocks and for each alert, and one for all other codes.
//! What its pages say to type is what the programs understand.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use stayput_api::Code;
use stayput_conformance::engine::Cluster;
use stayput_manager::errors::ErrorCode;
use stayput_restart::Predicate;

use crate::support::program::{finish, kubectl_stayput};
use crate::support::standin_cluster::Three;
use crate::support::yaml::documents;

/// Codes that block a cluster and are none of its rules, with the files that have them.
const OTHERS: [(&str, &str); 9] = [
    ("invalid_spec", "src/controller/effective_spec.rs"),
    ("outdated_definition", "src/controller/effective_spec.rs"),
    ("request_failed", "src/controller/status.rs"),
    ("pods_unlisted", "src/controller/status.rs"),
    ("declaration_refused", "src/controller/declared.rs"),
    ("declaration_failed", "src/controller/declared.rs"),
    ("foreign_object", "src/controller/declared.rs"),
    ("leave_refused", "src/controller/declared.rs"),
    ("no_pods", "src/kubectl/doctor/checks/cluster.rs"),
];

fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Name and text of each page.
fn pages() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/runbook");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<(String, String)> = entries
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path))
        .filter(|(name, _)| name != "README")
        .map(|(name, path)| (name, fs::read_to_string(path).unwrap()))
        .collect();
    pages.sort();
    pages
}

/// The codes for which `Code::blocks` is true.
fn blocking_codes() -> BTreeSet<String> {
    let rules = Predicate::ALL.map(|predicate| predicate.name().to_owned());
    codes("=> false", "=> true").into_iter().chain(rules).collect()
}

/// The codes for which it is false.
fn other_codes() -> BTreeSet<String> {
    codes("match self {", "=> false")
}

/// The codes whose arms are between two places in `Code::blocks`, by the words that stand for them.
fn codes(from: &str, to: &str) -> BTreeSet<String> {
    let source = file("src/restart/code.rs");
    let (_, blocks) = source.split_once("const fn blocks").unwrap();
    let (_, arms) = blocks.split_once(from).unwrap();
    let (arms, _) = arms.split_once(to).unwrap();
    let variants = arms.split("Self::").skip(1).filter_map(|arm| {
        arm.split(|c: char| !c.is_alphanumeric()).next().filter(|name| *name != "Predicate")
    });
    let word = |variant: &str| {
        let (_, rest) = source.split_once(&format!("Self::{variant} => \"")).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    variants.map(word).collect()
}

/// The page of all codes that do not block.
const WAITING: &str = "waiting";

/// The pages of the codes that a manager shows itself, without those that have a page of their own.
const OF_MANAGERS: [&str; 2] = ["engine_held", "manager_refusal"];

/// The page of the alert whose label names the blocking code.
const BLOCKED: &str = "restart_blocked";

/// Alerts, and the pages that they name by `runbook`.
fn alerts() -> Vec<(String, String)> {
    let rules = documents(&file("deploy/monitoring/rules.yaml")).remove(0);
    let groups = rules["spec"]["groups"].as_array().unwrap();
    let rules = groups.iter().flat_map(|group| group["rules"].as_array().unwrap());
    let alert = |rule: &Value| {
        let page = match rule["labels"]["runbook"].as_str().unwrap() {
            // That of the blocking code itself.
            "{{ $labels.rule }}" => BLOCKED,
            page => page,
        };
        (rule["alert"].as_str().unwrap().to_owned(), page.to_owned())
    };
    rules.map(alert).collect()
}

#[test] // proves OPERATE-2
fn each_code_that_blocks_and_each_alert_has_its_page() {
    let mut wanted = blocking_codes();
    assert!(wanted.len() > 30 && wanted.contains("quorum"), "{wanted:?}");
    for (code, source) in OTHERS {
        assert!(file(source).contains(&format!("\"{code}\"")), "{source} has no {code}");
        wanted.insert(code.to_owned());
    }
    wanted.extend(alerts().into_iter().map(|(_, page)| page));
    wanted.insert(WAITING.to_owned());
    wanted.extend(OF_MANAGERS.map(str::to_owned));
    let found: BTreeSet<String> = pages().into_iter().map(|(name, _)| name).collect();
    let missing: Vec<_> = wanted.difference(&found).collect();
    let unknown: Vec<_> = found.difference(&wanted).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing {missing:?}, unknown {unknown:?}");
}

#[test] // proves OPERATE-2
fn each_page_says_what_it_means_where_to_look_and_what_to_type() {
    let index = file("docs/runbook/README.md");
    for (name, text) in pages() {
        for part in ["# ", "\n**Means.** ", "\n**Look.**", "\n**Type.** "] {
            assert!(text.contains(part), "{name}: no {part:?}");
        }
        assert!(text.lines().count() <= 60, "{name} is too long for 3 a.m.");
        assert!(index.contains(&format!("]({name}.md)")), "{name} is not in the index");
    }
}

#[test] // proves OPERATE-2
fn the_program_has_every_page_as_it_is() {
    for (name, text) in pages() {
        let ended = finish(&mut kubectl_stayput(Path::new("/none"), ["runbook", &name]));
        assert_eq!((ended.code, ended.stdout, ended.stderr), (0, text, String::new()), "{name}");
    }
    let unknown = finish(&mut kubectl_stayput(Path::new("/none"), ["runbook", "quorums"]));
    assert_eq!(unknown.code, 64);
    assert!(unknown.stderr.contains("'quorum'"), "{}", unknown.stderr);
}

fn told(name: &str) -> String {
    let ended = finish(&mut kubectl_stayput(Path::new("/none"), ["runbook", name]));
    assert_eq!((ended.code, ended.stderr), (0, String::new()), "{name}");
    ended.stdout
}

#[test] // proves OPERATE-2
fn an_alert_is_understood_by_its_name() {
    let alerts = alerts();
    assert!(alerts.len() > 10, "{alerts:?}");
    for (alert, page) in alerts {
        assert_eq!(told(&alert), file(&format!("docs/runbook/{page}.md")), "{alert}");
    }
}

#[test] // proves OPERATE-2
fn a_code_that_does_not_block_is_explained_too() {
    let page = file("docs/runbook/waiting.md");
    let codes = other_codes();
    assert!(codes.len() > 20 && codes.contains("outside_window"), "{codes:?}");
    for code in codes {
        assert!(explains(&page, &code), "{code}");
        assert_eq!(told(&code), page, "{code}");
    }
}

/// Whether a row of a table on this page begins with the code.
fn explains(page: &str, code: &str) -> bool {
    page.lines().any(|line| {
        let first = line.strip_prefix("| ").and_then(|rest| rest.split('|').next());
        first.is_some_and(|first| first.contains(&format!("`{code}`")))
    })
}

/// The codes of a manager: of its answers, of its own errors, and of `reason` in its status.
fn manager_codes() -> BTreeSet<String> {
    let answers = Code::ALL.map(Code::as_str);
    let errors = ErrorCode::ALL.map(ErrorCode::as_str);
    let held = file("src/manager/lifecycle/intent.rs");
    let (_, held) = held.split_once("impl HeldCode").unwrap();
    let view = file("src/manager/lifecycle/view.rs");
    let reasons = [strings_after(held, "=> "), strings_after(&view, "reason(")];
    assert!(reasons.iter().all(|codes| codes.len() > 5), "{reasons:?}");
    let named = answers.into_iter().chain(errors).map(str::to_owned);
    named.chain(reasons.into_iter().flatten()).collect()
}

/// The strings of a source that follow this mark.
fn strings_after(source: &str, mark: &str) -> Vec<String> {
    let rests = source.split(mark).skip(1).map(str::trim_start);
    let strings = rests.filter_map(|rest| rest.strip_prefix('"')?.split('"').next());
    strings.map(str::to_owned).collect()
}

#[test] // proves OPERATE-2
fn each_code_of_a_manager_is_explained() {
    for code in manager_codes() {
        let page = told(&code);
        let is_its_own = page.starts_with(&format!("# `{code}`")) || code == "certificate";
        assert!(is_its_own || explains(&page, &code), "{code}: {page}");
    }
}

/// What the status says of a node that is down.
#[test]
fn why_a_node_is_down_is_explained_too() {
    let page = file("docs/runbook/nodes_down.md");
    // The first one is the head of the table.
    let rows = page.lines().filter(|line| line.starts_with("| `")).skip(1);
    let first = |row: &str| row.split('|').nth(1).unwrap().replace([' ', '`'], "");
    let codes = rows.map(first).collect::<Vec<_>>().join(",");
    assert!(codes.contains("not_in_cluster"), "{codes}");
    for code in codes.split(',') {
        let about = told(code);
        let own = ["manager_unreachable", "operator_replaces", "pod_not_started", "wrong_pod"]
            .contains(&code);
        assert!(own || about == page, "{code}: {about}");
    }
}

/// The commands of a page's blocks, with continued lines joined.
fn commands(text: &str) -> Vec<String> {
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let joined = blocks.map(|block| block.replace("\\\n", " ")).collect::<String>();
    joined.lines().map(|line| line.trim().to_owned()).collect()
}

/// The words of a command, as a shell reads them.
fn words(command: &str) -> Vec<String> {
    let print = format!("for word in {command}; do printf '%s\\n' \"$word\"; done");
    let output = Command::new("sh").args(["-c", &print]).output().unwrap();
    assert!(output.status.success(), "{command}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test] // proves OPERATE-2
fn what_is_to_be_typed_is_understood() {
    let (mut ours, mut theirs) = (0, 0);
    for (name, text) in pages() {
        let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        for block in blocks {
            let checked = Command::new("sh").args(["-n", "-c", block]).status().unwrap();
            assert!(checked.success(), "{name}: {block}");
        }
        for command in commands(&text) {
            let piped = command.split(" | ");
            for rest in piped.filter_map(|part| part.strip_prefix("kubectl stayput ")) {
                let words = [vec!["kubectl-stayput".to_owned()], words(rest)].concat();
                let parsed = stayput_kubectl::definition().try_get_matches_from(words);
                // `--version` is none.
                let error = parsed.err().filter(clap::Error::use_stderr);
                assert!(error.is_none(), "{name}: {command}: {}", error.unwrap());
                ours += 1;
            }
            if let Some((_, rest)) = command.split_once(" -- /stayput/stayput ") {
                let words = [vec!["stayput".to_owned()], words(rest)].concat();
                let parsed = stayput_manager::cli::definition().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{name}: {command}: {}", parsed.unwrap_err());
                theirs += 1;
            }
        }
    }
    assert!(ours > 40 && theirs > 10, "{ours} and {theirs} commands were found");
}

/// A request is queued behind one that is blocked, `inject` writes to stdout alone, and a rule that is
/// disabled stays so.
#[test] // proves OPERATE-2
fn what_is_to_be_typed_mends() {
    const DISABLE: &str = "eck.k8s.elastic.co/disable-upgrade-predicates";
    for (name, text) in pages() {
        let all = commands(&text);
        for (index, command) in all.iter().enumerate() {
            let accepts = ["--allow-", "--skip-rule"].iter().any(|word| command.contains(word));
            if accepts && command.contains(" restart ") {
                let before = index.checked_sub(1).map(|index| all[index].as_str());
                assert_eq!(
                    before,
                    Some("kubectl stayput -n search cancel logs"),
                    "{name}: {command}"
                );
            }
            let after = &all[index..];
            if command.contains(" inject") {
                assert!(command.starts_with("kubectl -n search get "), "{name}: {command}");
                assert!(
                    after.iter().any(|one| one.contains("| kubectl replace")),
                    "{name}: {command}"
                );
            }
            if command.contains(&format!("{DISABLE}=")) {
                assert!(
                    after.iter().any(|one| one.ends_with(&format!("{DISABLE}-"))),
                    "{name}: {command}"
                );
            }
        }
    }
}

/// `docs/runbook/allocation.md`, without a reconciler.
#[test] // proves OPERATE-7
fn four_lines_of_curl_undo_allocation() {
    let page = file("docs/runbook/allocation.md");
    let (_, rest) = page.split_once("```curl\n").unwrap();
    let (script, _) = rest.split_once("```").unwrap();
    assert_eq!(script.lines().count(), 4, "{script}");
    let three = Three::started("standin.distribution: elasticsearch");
    let limited = json!({
        "persistent": {
            "cluster.routing.allocation.enable": "primaries", "cluster.metadata.stayput": "{}",
        },
        "transient": { "cluster.routing.allocation.enable": "primaries" },
    });
    three.ask(0, "PUT", "/_cluster/settings", Some(&limited)).unwrap();
    three.ask(0, "POST", "/_cluster/voting_config_exclusions?node_names=n2", None).unwrap();
    let engine = format!("http://{}:9200", three.hosts()[0]);
    // A failed answer of the engine is a failure of the script.
    let script = script.replace("curl -sS", "curl -sS --fail-with-body");
    let output = Command::new("sh").args(["-ec", &script]).env("ENGINE", engine).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let (_, settings) = three.ask(0, "GET", "/_cluster/settings?flat_settings=true", None).unwrap();
    assert_eq!(settings, json!({ "persistent": {}, "transient": {} }), "{printed}");
    let (_, state) = three.ask(0, "GET", "/_cluster/state/metadata", None).unwrap();
    let excluded = &state["metadata"]["cluster_coordination"]["voting_config_exclusions"];
    assert_eq!(*excluded, json!([]), "{state}");
}
