//! `deploy/` and `docs/first-ten-minutes.md`: checks that need no cluster.
//! `tests/real/kubernetes/install.rs` applies them to the real apiserver.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use stayput_kube_access::cluster::{SearchCluster, allows};

use crate::support::yaml::documents;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).into()
}

fn manifests(file: &str) -> Vec<Value> {
    documents(&fs::read_to_string(root().join(file)).unwrap())
}

fn first_ten_minutes() -> String {
    document("first-ten-minutes.md")
}

fn document(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap()
}

fn usable(object: Value) -> SearchCluster {
    let cluster: SearchCluster = serde_json::from_value(object).unwrap();
    cluster.check().unwrap_or_else(|problems| panic!("{problems:#?}"));
    cluster
}

const EXAMPLE: &str = "deploy/example/searchcluster.yaml";

#[test]
fn the_example_can_be_used_and_its_credentials_allow_it() {
    let text = fs::read_to_string(root().join(EXAMPLE)).unwrap();
    let [as_it_is, secret] = documents(&text).try_into().unwrap();
    usable(as_it_is);
    let secured = text.replace("scheme: http ", "scheme: https ");
    let secured = secured.replace("# credentialsSecret:", "credentialsSecret:");
    let secured = secured.replace("# caSecret: logs-engine-ca", "caSecret: logs-engine-ca");
    let cluster = usable(documents(&secured).remove(0));
    let credentials = cluster.spec.engine.credentials_secret.as_deref().unwrap();
    assert_eq!(secret["metadata"]["name"], credentials);
    let annotations = serde_json::from_value(secret["metadata"]["annotations"].clone()).unwrap();
    let name = cluster.metadata.name.as_deref().unwrap();
    assert_eq!(allows("default", credentials, &annotations, name), Ok(()));
}

/// Comments in the manifest show the defaults: uncommented, nothing changes.
#[test]
fn the_defaults_shown_in_the_example_are_the_defaults() {
    const SAMPLES: [&str; 8] = [
        "nodeNameLabel:",
        "stopped:",
        " caSecret: logs-engine-ca",
        " serverName: logs",
        " credentialsSecret:",
        " distribution:",
        " version:",
        " image:",
    ];
    let text = fs::read_to_string(root().join(EXAMPLE)).unwrap();
    let shown: String = text
        .lines()
        .map(|line| {
            let commented = line.starts_with("  ") && line.trim_start().starts_with("# ");
            let is_sample = SAMPLES.iter().any(|field| line.contains(*field));
            if commented && !is_sample {
                line.replacen("# ", "", 1) + "\n"
            } else {
                line.to_owned() + "\n"
            }
        })
        .collect();
    let [with, _] = documents(&shown).try_into().unwrap();
    let [without, _] = documents(&text).try_into().unwrap();
    assert_ne!(with, without, "nothing was uncommented");
    assert_eq!(usable(with).spec, usable(without).spec);
}

/// The names of all fields of a schema, but not of those of a pod template and the like.
fn fields(schema: &Value, found: &mut BTreeSet<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        found.insert(name.clone());
        if name != "nodeSets" && name != "selector" {
            fields(field, found);
            fields(&field["items"], found);
        }
    }
}

#[test]
fn the_example_shows_every_field() {
    let crd = manifests("deploy/base/crd.yaml").remove(0);
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut all = BTreeSet::new();
    fields(schema, &mut all);
    assert!(all.len() > 40 && all.contains("windows"), "{all:?}");
    let text = fs::read_to_string(root().join(EXAMPLE)).unwrap();
    let words: BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
    all.retain(|name| !words.contains(name.as_str()));
    // Of one file of a Secret: docs/updates.md shows them.
    let known = ["key", "path"].map(str::to_owned);
    all.retain(|name| !known.contains(name));
    assert!(all.is_empty(), "not shown: {all:?}");
}

/// It names examples/kubernetes/statefulset.yaml.
#[test]
fn the_example_fits_the_pods_that_it_names() {
    let cluster = usable(manifests(EXAMPLE).remove(0));
    let set = manifests("examples/kubernetes/statefulset.yaml").remove(0);
    let template = &set["spec"]["template"];
    let container = &template["spec"]["containers"][0];
    let value = |name: &str| {
        let mut all = container["env"].as_array().unwrap().iter();
        all.find(|one| one["name"] == name).map(|one| one["value"].as_str().unwrap())
    };
    let spec = serde_json::to_value(&cluster.spec).unwrap();
    assert_eq!(spec["pods"]["selector"]["matchLabels"], template["metadata"]["labels"]);
    assert_eq!(value("STAYPUT_LIVE"), None);
    assert!(cluster.spec.config.live.is_empty());
    assert_eq!(value("DISABLE_SECURITY_PLUGIN"), Some("true"));
    assert_eq!(spec["engine"]["scheme"], "http");
    assert_eq!(value("STAYPUT_CONFIG"), Some("/config"));
    let volumes = template["spec"]["volumes"].as_array().unwrap();
    let config = volumes.iter().find(|one| one["name"] == "config").unwrap();
    assert_eq!(spec["config"]["sources"][0]["secret"], config["secret"]["secretName"]);
}

/// The ClusterRoles that are bound in every namespace.
fn bound_everywhere(directory: &str) -> Vec<String> {
    let objects = installed(directory).into_iter();
    let bindings = objects.filter(|object| object["kind"] == "ClusterRoleBinding");
    bindings.map(|binding| binding["roleRef"]["name"].as_str().unwrap().to_owned()).collect()
}

/// All rights in every namespace are given only by the variant of that name.
#[test] // proves OPERATE-12
fn the_usual_install_reads_no_secret_and_changes_no_pod() {
    assert_eq!(bound_everywhere("deploy"), ["stayput-reconciler-searchclusters"]);
    assert_eq!(bound_everywhere("deploy/namespaced"), [""; 0]);
    assert_eq!(bound_everywhere("deploy/all-namespaces"), ["stayput-reconciler"]);
    let role = manifests("deploy/searchclusters.yaml").remove(0);
    for rule in role["rules"].as_array().unwrap() {
        let is_ours = rule["apiGroups"] == serde_json::json!(["stayput.dev"]);
        let reads_pods = rule["resources"] == serde_json::json!(["pods"])
            && rule["verbs"] == serde_json::json!(["get", "list", "watch"]);
        assert!(is_ours || reads_pods, "{rule}");
    }
    let [declared] = manifests("deploy/declared.yaml").try_into().unwrap();
    assert_eq!(declared["kind"], "ClusterRole", "it is bound in single namespaces");
}

/// Also where the one namespace is the reconciler's own.
#[test] // proves OPERATE-13
fn no_two_objects_have_one_name() {
    let mut names = BTreeSet::new();
    for object in installed("deploy/namespaced") {
        let metadata = &object["metadata"];
        let mut name =
            [&object["kind"], &metadata["namespace"], &metadata["name"]].map(Value::to_string);
        name[1] = name[1].replace("search", "stayput");
        assert!(names.insert(name.clone()), "{name:?}");
    }
    assert!(names.len() > 10, "{names:?}");
}

/// They name every namespace with a SearchCluster.
#[test] // proves OPERATE-14
fn metrics_are_read_from_labelled_namespaces_alone() {
    let policy = manifests("deploy/base/network-policy.yaml").remove(0);
    let [rule] = policy["spec"]["ingress"].as_array().unwrap().as_slice() else {
        panic!("{policy}")
    };
    let label = &rule["from"][0]["namespaceSelector"]["matchLabels"];
    assert_eq!(*label, serde_json::json!({"stayput.dev/metrics": "read"}), "{rule}");
    assert_eq!(rule["from"].as_array().unwrap().len(), 1, "{rule}");
    assert!(
        document("monitoring.md")
            .contains("kubectl label namespace monitoring stayput.dev/metrics=read")
    );
}

/// A pod is deleted only where somebody has installed the role for it.
#[test] // proves UPDATE-54
fn no_install_lets_the_reconciler_delete_pods() {
    let has = |rule: &Value, field: &str, values: &[&str]| {
        let all = rule[field].as_array().into_iter().flatten();
        all.filter_map(Value::as_str).any(|one| values.contains(&one))
    };
    let deletes_pods = |objects: Vec<Value>| {
        let rules = objects.iter().flat_map(|object| object["rules"].as_array()).flatten();
        let deletes = |rule: &Value| has(rule, "verbs", &["delete", "deletecollection", "*"]);
        let of_pods: Vec<&Value> =
            rules.filter(|rule| has(rule, "resources", &["pods", "*"]) && deletes(rule)).collect();
        !of_pods.is_empty()
    };
    for directory in ["deploy", "deploy/namespaced", "deploy/all-namespaces"] {
        let objects = installed(directory);
        let roles = objects.iter().filter(|object| object["rules"].is_array()).count();
        assert!(roles >= 3, "{directory}: {roles}");
        assert!(!deletes_pods(objects), "{directory}");
    }
    assert!(!deletes_pods(manifests("deploy/declared.yaml")));
    assert!(deletes_pods(installed("deploy/replace")));
}

/// All objects of a kustomization.
fn installed(directory: &str) -> Vec<Value> {
    let kustomization = manifests(&format!("{directory}/kustomization.yaml")).remove(0);
    let resources = kustomization["resources"].as_array().expect("resources").iter();
    let resources = resources.map(|one| format!("{directory}/{}", one.as_str().expect("a path")));
    let objects = resources.flat_map(|path| {
        if root().join(&path).is_dir() { installed(&path) } else { manifests(&path) }
    });
    objects.collect()
}

/// A drain of Kubernetes nodes leaves one of the reconciler's pods, and more important pods take no
/// place of them.
#[test] // proves RESTART-104
fn the_reconciler_has_a_disruption_budget_and_a_priority() {
    let [deployment] = manifests("deploy/base/deployment.yaml").try_into().unwrap();
    let [budget, class] = manifests("deploy/base/availability.yaml").try_into().unwrap();
    let installed = fs::read_to_string(root().join("deploy/base/kustomization.yaml")).unwrap();
    assert!(installed.contains("availability.yaml"), "{installed}");
    let template = &deployment["spec"]["template"];
    assert_eq!(class["kind"], "PriorityClass");
    assert_eq!(template["spec"]["priorityClassName"], class["metadata"]["name"]);
    assert!(class["value"].as_i64().unwrap() > 0, "{class}");
    assert_eq!(budget["kind"], "PodDisruptionBudget");
    assert_eq!(budget["metadata"]["namespace"], deployment["metadata"]["namespace"]);
    let labels = template["metadata"]["labels"].as_object().unwrap();
    let selected = budget["spec"]["selector"]["matchLabels"].as_object().unwrap();
    assert!(!selected.is_empty() && selected.iter().all(|(key, value)| labels[key] == *value));
    let replicas = deployment["spec"]["replicas"].as_i64().unwrap();
    let may_go = budget["spec"]["maxUnavailable"].as_i64().unwrap();
    assert!((1..replicas).contains(&may_go), "{may_go} of {replicas}");
}

#[test]
fn the_name_in_the_pods_is_the_name_of_the_account() {
    let account = "system:serviceaccount:stayput:stayput-reconciler";
    let accounts = manifests("deploy/base/rbac.yaml");
    assert_eq!(accounts[0]["kind"], "ServiceAccount");
    let metadata = &accounts[0]["metadata"];
    let (namespace, name) = (&metadata["namespace"], &metadata["name"]);
    assert_eq!(
        format!("system:serviceaccount:{}:{}", namespace.as_str().unwrap(), name.as_str().unwrap()),
        account
    );
    let patch = fs::read_to_string(root().join("examples/kubernetes/patch.yaml")).unwrap();
    assert!(patch.contains(&format!("{account}=es:read es:control")));
}

fn blocks(document: &str) -> Vec<&str> {
    let blocks = document.split("```sh\n").skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn every_block_of_the_first_ten_minutes_is_a_script() {
    let document = first_ten_minutes();
    let blocks = blocks(&document);
    assert!(blocks.len() > 10, "{}", blocks.len());
    let declared = self::document("declared.md");
    for block in blocks.into_iter().chain(self::blocks(&declared)) {
        let checked = Command::new("sh").args(["-n", "-c", block]).status().unwrap();
        assert!(checked.success(), "{block}");
    }
}

/// Paths in the document exist in this repository.
#[test]
fn the_first_ten_minutes_name_files_that_are_there() {
    let document = first_ten_minutes() + &self::document("declared.md");
    let words = document.split(|c: char| c.is_whitespace() || "()`".contains(c));
    let paths: Vec<&str> = words
        .map(|word| word.trim_start_matches("../").trim_end_matches(['.', ',', ';', ':']))
        .filter(|word| ["deploy/", "examples/", "docker/"].iter().any(|at| word.starts_with(at)))
        .collect();
    assert!(paths.len() > 5, "{paths:?}");
    for path in paths {
        assert!(root().join(path).exists(), "{path}");
    }
}
