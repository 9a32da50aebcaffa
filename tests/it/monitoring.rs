//! `deploy/monitoring`: every query of rules and dashboard asks for what is served. What is served is
//! in `proto/metrics`, which the programs' own tests write; that a running program serves nothing else
//! is in `reconciler/program.rs` and `supervise/log.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::metrics::{Series, asked, served};
use crate::support::program::{finish, kubectl_stayput};
use crate::support::yaml::documents;

/// Labels that a scraper adds to each series of a target.
const OF_TARGETS: [&str; 2] = ["namespace", "pod"];

fn file(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// What reconciler and manager serve.
fn known() -> Series {
    let mut known = served(&file("proto/metrics/reconciler.txt"));
    known.extend(served(&file("proto/metrics/manager.txt")));
    assert!(known.len() > 25, "{known:?}");
    known
}

/// A query, and the text that is shown with its result.
struct Query {
    place: String,
    expression: String,
    text: String,
}

fn queries_of_rules() -> Vec<Query> {
    let rules = documents(&file("deploy/monitoring/rules.yaml")).remove(0);
    let groups = rules["spec"]["groups"].as_array().unwrap();
    let rules = groups.iter().flat_map(|group| group["rules"].as_array().unwrap());
    rules
        .map(|rule| Query {
            place: rule["alert"].as_str().unwrap().to_owned(),
            expression: rule["expr"].as_str().unwrap().to_owned(),
            text: format!("{}{}", rule["labels"], rule["annotations"]),
        })
        .collect()
}

fn queries_of_the_dashboard() -> Vec<Query> {
    let dashboard: Value = serde_json::from_str(&file("deploy/monitoring/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let of_panel = |panel: &Value| -> Vec<Query> {
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        let query = |target: &Value| Query {
            place: panel["title"].to_string(),
            expression: target["expr"].as_str().unwrap().to_owned(),
            text: target["legendFormat"].as_str().unwrap().to_owned(),
        };
        targets.iter().map(query).collect()
    };
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let variables = variables.filter(|one| one["type"] == "query").map(|one| Query {
        place: one["name"].to_string(),
        expression: one["query"].as_str().unwrap().to_owned(),
        text: String::new(),
    });
    panels.iter().flat_map(of_panel).chain(variables).collect()
}

/// The labels that are kept by `by (…)`, that are asked for by `label_values(…, LABEL)`, or that the
/// text shows.
fn labels(query: &Query) -> BTreeSet<String> {
    let by = query.expression.split("by (").skip(1).filter_map(|rest| rest.split(')').next());
    let by = by.flat_map(|labels| labels.split(',').map(|label| label.trim().to_owned()));
    let values = query.expression.strip_prefix("label_values(");
    let values = values.and_then(|rest| rest.strip_suffix(')')?.rsplit_once(", "));
    let shown = query.text.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
    let shown = shown.map(str::trim).filter(|name| !name.starts_with("$value"));
    let shown = shown.map(|name| name.trim_start_matches("$labels.").to_owned());
    by.chain(values.map(|(_, label)| label.to_owned())).chain(shown).collect()
}

/// What a query asks for and nobody serves.
fn problems(query: &Query, known: &Series) -> Vec<String> {
    let mut problems = Vec::new();
    let mut there: BTreeSet<String> = OF_TARGETS.map(str::to_owned).into();
    let asked = asked(&query.expression);
    if asked.is_empty() {
        problems.push(format!("{}: asks for no metric of ours", query.place));
    }
    for (name, labels) in &asked {
        let Some(served) = known.get(name) else {
            problems.push(format!("{}: {name} is not served", query.place));
            continue;
        };
        there.extend(served.iter().cloned());
        let unknown = labels.difference(&there);
        problems.extend(unknown.map(|label| format!("{}: {name} has no {label}", query.place)));
    }
    let unknown: Vec<String> = labels(query).difference(&there).cloned().collect();
    problems.extend(unknown.iter().map(|label| format!("{}: no label {label}", query.place)));
    problems
}

#[test] // proves OPERATE-8
fn every_query_asks_for_what_is_served() {
    let known = known();
    let queries: Vec<Query> =
        queries_of_rules().into_iter().chain(queries_of_the_dashboard()).collect();
    assert!(queries.len() > 35, "{}", queries.len());
    let problems: Vec<String> = queries.iter().flat_map(|one| problems(one, &known)).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_query_for_what_is_not_served_is_found() {
    let known = known();
    let found = |expression: &str, text: &str| {
        let (expression, text) = (expression.to_owned(), text.to_owned());
        problems(&Query { place: "it".into(), expression, text }, &known).join("; ")
    };
    assert_eq!(found("max by (cluster) (stayput_debts) > 0", "{{ $labels.cluster }}"), "");
    assert_eq!(found("stayput_debt > 0", ""), "it: stayput_debt is not served");
    assert_eq!(found("stayput_debts{node=\"a\"}", ""), "it: stayput_debts has no node");
    assert_eq!(found("sum by (node) (stayput_debts)", ""), "it: no label node");
    assert_eq!(found("stayput_debts", "{{rule}}"), "it: no label rule");
    assert_eq!(found("label_values(stayput_debts, rule)", ""), "it: no label rule");
    assert_eq!(found("up == 0", ""), "it: asks for no metric of ours");
}

/// `docs/monitoring.md` lists every metric and every alert.
#[test]
fn the_document_lists_what_is_served_and_what_alarms() {
    let document = file("docs/monitoring.md");
    let is_in_it = |word: &str| document.contains(&format!("`{word}`"));
    for name in known().into_keys().filter(|name| !name.ends_with("_sum")) {
        let name = name.trim_end_matches("_bucket").trim_end_matches("_count");
        assert!(is_in_it(name), "{name}");
    }
    for rule in queries_of_rules() {
        assert!(is_in_it(&rule.place), "{}", rule.place);
    }
}

/// The script of `docs/monitoring.md`: a label that names the Kubernetes is kept by every alert.
#[test]
fn the_rules_can_be_made_for_several_kubernetes() {
    let document = file("docs/monitoring.md");
    let blocks = document.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let script = blocks.into_iter().find(|block| block.starts_with("sed ")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("deploy/monitoring");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("rules.yaml"), file("deploy/monitoring/rules.yaml")).unwrap();
    let mut shell = Command::new("sh");
    let status = shell.args(["-ec", script]).current_dir(directory.path()).status().unwrap();
    assert!(status.success());
    let written = fs::read_to_string(directory.path().join("rules-of-several.yaml")).unwrap();
    for rule in documents(&written).remove(0)["spec"]["groups"].as_array().unwrap() {
        for rule in rule["rules"].as_array().unwrap() {
            let expression = rule["expr"].as_str().unwrap();
            let aggregations = ["sum(", "absent(", "by (cluster", "max(", "count("];
            let drops = aggregations.iter().find(|word| expression.contains(**word));
            assert_eq!(drops, None, "{expression}");
        }
    }
    assert!(written.contains("sum by (k8s) (stayput_leader) == 0 or (count by (k8s)"), "{written}");
}

/// The engines' containers of a manifest that `inject --open-metrics` has written.
fn opened(manifest: &str, containers: fn(&Value) -> Vec<&Value>) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/inject/tests/manifests");
    let path = folder.join(manifest);
    let words = ["inject", "--open-metrics", path.to_str().unwrap()];
    let ended = finish(&mut kubectl_stayput(Path::new("/none"), words));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let documents = documents(&ended.stdout);
    let found: Vec<Value> = documents.iter().flat_map(containers).cloned().collect();
    assert!(!found.is_empty(), "{manifest}");
    found
}

fn has_variable(container: &Value) -> bool {
    let mut variables = container["env"].as_array().unwrap().iter();
    variables.any(|one| one["name"] == "STAYPUT_OPEN_METRICS" && one["value"] == "true")
}

/// `inject --open-metrics` and the PodMonitor for managers fit each other.
#[test] // proves OPERATE-9
fn the_managers_can_be_scraped_after_inject() {
    let monitor = documents(&file("deploy/monitoring/example/managers.yaml")).remove(0);
    let endpoint = &monitor["spec"]["podMetricsEndpoints"][0];
    let of_set: fn(&Value) -> Vec<&Value> = |object| {
        let template = &object["spec"]["template"]["spec"]["containers"];
        template.as_array().into_iter().flatten().collect()
    };
    let of_eck: fn(&Value) -> Vec<&Value> = |object| {
        let sets = object["spec"]["nodeSets"].as_array().into_iter().flatten();
        sets.map(|set| &set["podTemplate"]["spec"]["containers"][0]).collect()
    };
    for (manifest, containers) in
        [("opensearch-chart.yaml", of_set), ("hand-written.yaml", of_set), ("eck.yaml", of_eck)]
    {
        for container in opened(manifest, containers) {
            assert!(has_variable(&container), "{manifest}: {container}");
            let ports = container["ports"].as_array().unwrap();
            let port = ports.iter().find(|port| port["name"] == endpoint["port"]);
            assert_eq!(port.unwrap()["containerPort"], 9199, "{manifest}");
        }
    }
    // The operator does not let one name a port: docs/monitoring.md.
    let pools: fn(&Value) -> Vec<&Value> =
        |object| object["spec"]["nodePools"].as_array().into_iter().flatten().collect();
    assert!(opened("opensearch-cluster.yaml", pools).iter().all(has_variable));
}

/// Each alert has a severity, a summary, and the command that shows its page.
#[test]
fn every_alert_says_what_to_do() {
    let rules = documents(&file("deploy/monitoring/rules.yaml")).remove(0);
    let groups = rules["spec"]["groups"].as_array().unwrap();
    for rule in groups.iter().flat_map(|group| group["rules"].as_array().unwrap()) {
        let severity = rule["labels"]["severity"].as_str().unwrap_or_default();
        assert!(["critical", "warning", "info"].contains(&severity), "{rule}");
        assert!(rule["annotations"]["summary"].is_string(), "{rule}");
        let page = rule["labels"]["runbook"].as_str().unwrap_or_default();
        let command = format!("What to do: kubectl stayput runbook {page}");
        let description = rule["annotations"]["description"].as_str().unwrap_or_default();
        assert!(description.ends_with(&command), "{rule}");
    }
}
