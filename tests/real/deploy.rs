//! `deploy/` read by the programs that it is made for: Helm, kustomize, promtool, krew.

mod krew;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::kubernetes::apiserver::part;
use crate::support::skip;

#[path = "../it/support/yaml.rs"]
mod yaml;

/// Objects by kind, namespace and name.
type Objects = BTreeMap<[String; 3], Value>;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

/// Its output, or all that it printed if it failed.
fn run(program: &Path, args: &[&str]) -> Result<String, String> {
    // Nothing from the caller's home.
    let mut command = Command::new(program);
    command.args(args).current_dir(deploy()).env_clear().env("HOME", "/nonexistent");
    let output = command.output().expect("it can be executed");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = text(&output.stdout);
    let all = printed.clone() + &text(&output.stderr);
    output.status.success().then_some(printed).ok_or(all)
}

#[track_caller]
fn succeeds(program: &Path, args: &[&str]) -> String {
    run(program, args).unwrap_or_else(|printed| panic!("{args:?}\n{printed}"))
}

fn objects(manifests: &str) -> Objects {
    let key = |object: &Value| {
        let metadata = &object["metadata"];
        [&object["kind"], &metadata["namespace"], &metadata["name"]]
            .map(|word| word.as_str().unwrap_or_default().to_owned())
    };
    let documents = yaml::documents(manifests).into_iter().filter(|object| !object.is_null());
    documents.map(|object| (key(&object), object)).collect()
}

fn kustomized(kube: &Path, folders: &[&str]) -> Objects {
    let of_folder = |folder: &&str| objects(&succeeds(kube, &["kubectl", "kustomize", folder]));
    folders.iter().flat_map(of_folder).collect()
}

/// The chart renders object by object what kustomize does; the Namespace is the release's.
#[test] // proves OPERATE-11, OPERATE-13
fn the_chart_makes_what_kustomize_makes() {
    const NAME: &str = "deploy::the_chart_makes_what_kustomize_makes";
    let (helm, kube) = match part("STAYPUT_HELM").and_then(|helm| Ok((helm, part("STAYPUT_KUBE")?)))
    {
        Ok(parts) => parts,
        Err(why) => return skip(NAME, &why),
    };
    let chart = "helm/stayput-reconciler";
    let rendered = |values: &[&str]| {
        let base = ["template", "any", chart, "--namespace", "stayput", "--include-crds"];
        objects(&succeeds(&helm, &[&base[..], values].concat()))
    };
    succeeds(&helm, &["lint", "--strict", "--namespace", "stayput", chart]);
    let declared = objects(&fs::read_to_string(deploy().join("declared.yaml")).expect("a file"));
    let all = ["--set", "declared=true,replace=true,keepPods.enabled=true"];
    let beside = kustomized(&kube, &["replace", "keep-pods"]);
    let more: Objects = declared.into_iter().chain(beside).collect();
    let one = ["--set", "namespaces={search}"];
    let everywhere = ["--set", "allNamespaces=true"];
    for (values, mut wanted) in [
        (&[][..], kustomized(&kube, &["."])),
        (&one[..], kustomized(&kube, &["namespaced"])),
        (&everywhere[..], kustomized(&kube, &["all-namespaces"])),
        (&all[..], kustomized(&kube, &["."]).into_iter().chain(more).collect()),
    ] {
        wanted.retain(|[kind, ..], _| kind != "Namespace");
        let found = rendered(values);
        let names = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&wanted), "{values:?}");
        for (name, object) in wanted {
            assert_eq!(found[&name], object, "{values:?}: {name:?}");
        }
    }
    // No two objects have one name, also where the namespace is the release's own.
    let own = ["--set", "namespaces={search,stayput}"];
    let text = succeeds(
        &helm,
        &[&["template", "any", chart, "--namespace", "stayput"][..], &own].concat(),
    );
    assert_eq!(objects(&text).len(), text.matches("\nkind: ").count(), "{text}");
    let ports = "networkPolicy.apiserverPorts={16443}";
    let egress = r#"networkPolicy.egress=[{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]"#;
    let found = rendered(&["--set", ports, "--set-json", egress]);
    let policy = ["NetworkPolicy", "stayput", "stayput-reconciler"].map(str::to_owned);
    let rules = &found[&policy]["spec"]["egress"];
    assert_eq!(rules[0]["ports"], json!([{"port": 16443, "protocol": "TCP"}]));
    assert_eq!(rules[2]["to"][0]["ipBlock"]["cidr"], "10.0.0.0/8");
    let found = rendered(&["--set", "keepPods.enabled=true,keepPods.names={alice,search-team}"]);
    let policy = ["ValidatingAdmissionPolicy", "", "stayput-keep-pods"].map(str::to_owned);
    let names = found[&policy]["spec"]["variables"][0]["expression"].as_str().expect("a list");
    let names: Value = serde_json::from_str(names).expect("a list of CEL, and JSON");
    assert_eq!(names, json!(["alice", "search-team"]));
    // More rights for one namespace are bound there alone.
    let found = rendered(&[&one[..], &all[..]].concat());
    let kinds: Vec<&str> = found.keys().map(|[kind, ..]| kind.as_str()).collect();
    assert!(!kinds.contains(&"ClusterRoleBinding"), "{kinds:?}");
    let name = ["RoleBinding", "search", "stayput-reconciler-declared"].map(str::to_owned);
    assert_eq!(found[&name]["roleRef"]["kind"], "ClusterRole");
    // And in every namespace only where that is said.
    let name = ["ClusterRoleBinding", "", "stayput-reconciler-declared"].map(str::to_owned);
    assert!(rendered(&[&everywhere[..], &all[..]].concat()).contains_key(&name));
    let both = [&["template", "any", chart, "--namespace", "stayput"][..], &one, &everywhere];
    let refused = run(&helm, &both.concat()).expect_err("they contradict each other");
    assert!(refused.contains("set one of the two"), "{refused}");
    // Managers and `kubectl stayput` know one namespace.
    for elsewhere in [&["--namespace", "other"][..], &[]] {
        let refused = run(&helm, &[&["template", "any", chart][..], elsewhere].concat());
        let printed = refused.expect_err("another namespace");
        assert!(printed.contains("in the namespace stayput alone"), "{printed}");
    }
    for wrong in [
        "replicas=0",
        "replica=3",
        "namespaces=search",
        "image.pullPolicy=always",
        "image.tag=1",
        "keepPods=true",
        "keepPods.names=alice",
    ] {
        let refused = run(&helm, &["template", "any", chart, "--set", wrong]);
        let printed = refused.expect_err(wrong);
        assert!(printed.contains("schema"), "{wrong}: {printed}");
    }
}

/// The rules are accepted by Prometheus, and `deploy/monitoring/tests.yaml` says what fires when.
#[test] // proves OPERATE-8
fn alerts_fire_when_they_should_and_not_before() {
    const NAME: &str = "deploy::alerts_fire_when_they_should_and_not_before";
    let promtool = match part("STAYPUT_PROMTOOL") {
        Ok(promtool) => promtool,
        Err(why) => return skip(NAME, &why),
    };
    let directory = tempfile::tempdir().expect("a directory");
    let read = |name: &str| fs::read_to_string(deploy().join("monitoring").join(name));
    let object = read("rules.yaml").expect("a file");
    let (_, spec) = object.split_once("\nspec:\n").expect("a spec");
    let rules: String = spec
        .lines()
        .map(|line| line.strip_prefix("  ").unwrap_or(line).to_owned() + "\n")
        .collect();
    let tests = read("tests.yaml").expect("a file");
    let files = [("rules.yml", rules), ("tests.yml", tests.clone())].map(|(name, text)| {
        let path = directory.path().join(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("a path in UTF-8").to_owned()
    });
    succeeds(&promtool, &["check", "rules", "--lint=all", "--lint-fatal", &files[0]]);
    succeeds(&promtool, &["test", "rules", &files[1]]);
    let alerts = object.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    for alert in alerts {
        assert!(tests.contains(&format!("alertname=\"{alert}\"")), "{alert} is not tested");
    }
}

/// Each query of the dashboard, with a value for each of Grafana's variables, is one of Prometheus.
#[test] // proves OPERATE-8
fn every_query_of_the_dashboard_is_one_of_prometheus() {
    const NAME: &str = "deploy::every_query_of_the_dashboard_is_one_of_prometheus";
    let promtool = match part("STAYPUT_PROMTOOL") {
        Ok(promtool) => promtool,
        Err(why) => return skip(NAME, &why),
    };
    let text = fs::read_to_string(deploy().join("monitoring/dashboard.json")).expect("a file");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let rules: Vec<Value> = targets
        .enumerate()
        .map(|(number, target)| {
            let query = target["expr"].as_str().expect("a query");
            let query = query.replace("$__rate_interval", "5m");
            let query = query.replace("$cluster", ".*").replace("$namespace", ".*");
            assert!(!query.contains('$'), "another variable: {query}");
            json!({ "record": format!("dashboard:query{number}"), "expr": query })
        })
        .collect();
    assert!(rules.len() > 25, "{rules:?}");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("rules.yml");
    // What is JSON is YAML.
    let groups = json!({ "groups": [{ "name": "dashboard", "rules": rules }] });
    fs::write(&file, groups.to_string()).expect("a file");
    succeeds(&promtool, &["check", "rules", file.to_str().expect("a path in UTF-8")]);
}

/// What `kubectl apply -k deploy/monitoring` sends.
#[test]
fn monitoring_has_rules_scraping_and_the_dashboard() {
    const NAME: &str = "deploy::monitoring_has_rules_scraping_and_the_dashboard";
    let kube = match part("STAYPUT_KUBE") {
        Ok(kube) => kube,
        Err(why) => return skip(NAME, &why),
    };
    let objects = kustomized(&kube, &["monitoring"]);
    let names: Vec<String> = objects.keys().map(|name| name.join("/")).collect();
    let wanted = [
        "ConfigMap/stayput/stayput-dashboard",
        "PodMonitor/stayput/stayput-reconciler",
        "PrometheusRule/stayput/stayput",
    ];
    assert_eq!(names, wanted);
    let dashboard = objects.values().next().expect("the first");
    assert_eq!(dashboard["metadata"]["labels"]["grafana_dashboard"], "1");
    let text = fs::read_to_string(deploy().join("monitoring/dashboard.json")).expect("a file");
    assert_eq!(dashboard["data"]["dashboard.json"], text);
}
