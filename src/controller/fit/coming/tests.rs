//! What the pod that comes has: of its template, and of admission.

use serde_json::{Value, json};

use super::*;
use crate::fit::requests;

fn read<T: serde::de::DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("an object of Kubernetes")
}

fn search(resources: Value) -> Value {
    json!({"name": "search", "resources": resources})
}

fn coming(new: Value, old: Value, live: Value) -> Coming {
    let template = |spec: Value| read(json!({"metadata": {"labels": {"app": "a"}}, "spec": spec}));
    let labels = json!({"app": "a", "injected": "yes", "controller-revision-hash": "1"});
    let pod: Pod = read(json!({"metadata": {"labels": labels}, "spec": live}));
    Coming::of(template(new), Some(template(old)), &pod, "2")
}

/// Memory that the pod requests, in MiB.
fn memory(new: Value, old: Value, live: Value) -> String {
    let coming = coming(
        json!({"containers": [search(new)]}),
        json!({"containers": [search(old)]}),
        json!({"containers": [search(live)]}),
    );
    let all = requests::Amounts::of_pod(&coming.spec);
    let nothing = requests::Amounts::default();
    let found = all.above(&nothing).find(|(name, ..)| *name == "memory");
    found.map_or("none".to_owned(), |(name, amount, _)| requests::shown(name, amount))
}

#[test] // proves UPDATE-9
fn amounts_of_admission_come_again_and_those_of_the_template_count() {
    let requests = |amount: &str| json!({"requests": {"memory": amount}});
    let limits = |amount: &str| json!({"limits": {"memory": amount}});
    let both = |request: &str, limit: &str| json!({"requests": {"memory": request}, "limits": {"memory": limit}});
    let rows = [
        ("no admission", requests("2Gi"), requests("1Gi"), requests("1Gi"), "2048 MiB"),
        ("a default of a LimitRange", json!({}), json!({}), both("1Gi", "2Gi"), "1024 MiB"),
        ("the template says it now", requests("3Gi"), json!({}), both("1Gi", "2Gi"), "3072 MiB"),
        ("the template limits it now", limits("3Gi"), json!({}), both("1Gi", "2Gi"), "3072 MiB"),
        ("admission has raised it", requests("1Gi"), requests("1Gi"), requests("2Gi"), "2048 MiB"),
        (
            "a request that follows its limit",
            limits("3Gi"),
            limits("1Gi"),
            both("1Gi", "1Gi"),
            "3072 MiB",
        ),
        ("nothing at all", json!({}), json!({}), json!({}), "none"),
    ];
    for (name, new, old, live, expected) in rows {
        assert_eq!(memory(new, old, live), expected, "{name}");
    }
}

#[test] // proves UPDATE-9
fn containers_tolerations_selectors_and_labels_of_admission_come_again() {
    let sidecar = json!({"name": "mesh", "resources": {"requests": {"memory": "1Gi"}}});
    let init = json!({"name": "mesh-init"});
    let found = coming(
        json!({
            "containers": [{"name": "search"}], "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "new", "operator": "Exists"}],
        }),
        json!({
            "containers": [{"name": "search"}, {"name": "gone"}],
            "nodeSelector": {"disk": "hdd", "old": "yes"},
            "tolerations": [{"key": "old", "operator": "Exists"}],
        }),
        json!({
            "containers": [{"name": "search"}, {"name": "gone"}, sidecar],
            "initContainers": [init],
            "nodeSelector": {"disk": "hdd", "old": "yes", "pool": "search"},
            "tolerations": [
                {"key": "old", "operator": "Exists"}, {"key": "added", "operator": "Exists"},
            ],
        }),
    );
    let names = |list: &[Container]| list.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&found.spec.containers), ["search", "mesh"]);
    assert_eq!(names(found.spec.init_containers.as_deref().unwrap()), ["mesh-init"]);
    let selector = found.spec.node_selector.unwrap();
    assert_eq!(selector, read(json!({"disk": "ssd", "pool": "search"})));
    let tolerated: Vec<_> =
        found.spec.tolerations.unwrap().into_iter().filter_map(|one| one.key).collect();
    assert_eq!(tolerated, ["new", "added"]);
    let labels = json!({"app": "a", "injected": "yes", "controller-revision-hash": "2"});
    assert_eq!(found.labels, read(labels));
}
