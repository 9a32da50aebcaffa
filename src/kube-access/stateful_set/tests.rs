//! Which pods a StatefulSet replaces, by objects as the apiserver returns them.

use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::{Value, json};

use super::*;

/// A set of three pods whose template was edited, after its controller has seen the edit.
fn set(spec: Value) -> StatefulSet {
    let mut set = json!({
        "metadata": {"name": "logs", "namespace": "search", "uid": "u", "generation": 2},
        "spec": {
            "replicas": 3,
            "serviceName": "logs",
            "selector": {"matchLabels": {"app": "logs"}},
            "template": {
                "metadata": {"labels": {"app": "logs"}},
                "spec": {"containers": [{"name": "search", "image": "search:2"}]},
            },
        },
        "status": {
            "replicas": 3,
            "observedGeneration": 2,
            "currentRevision": "logs-old",
            "updateRevision": "logs-new",
        },
    });
    for (key, value) in spec.as_object().expect("an object") {
        set["spec"][key] = value.clone();
    }
    serde_json::from_value(set).expect("a StatefulSet")
}

/// Why the set replaces a pod with this name and revision.
fn why(set: &StatefulSet, name: &str, revision: &str) -> Option<String> {
    replaces(&Set::of(set), "search", name, revision)
}

/// Which of three pods with the old revision it replaces, from the ordinal of the first.
fn replaced(spec: Value, first: u32) -> Vec<u32> {
    let set = set(spec);
    let is_replaced = |at: &u32| why(&set, &format!("logs-{at}"), "logs-old").is_some();
    (first..first + 3).filter(is_replaced).collect()
}

#[test] // proves RESTART-153
fn only_pods_that_its_strategy_replaces_wait_for_an_edited_template() {
    let rolling = |partition: u32| json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}});
    let with = |strategy: Value| json!({"updateStrategy": strategy});
    let ordinals =
        |partition| json!({"updateStrategy": rolling(partition), "ordinals": {"start": 5}});
    for (what, spec, first, expected) in [
        ("no strategy is RollingUpdate", json!({}), 0, vec![0, 1, 2]),
        ("RollingUpdate", with(json!({"type": "RollingUpdate"})), 0, vec![0, 1, 2]),
        ("no partition", with(rolling(0)), 0, vec![0, 1, 2]),
        ("some below the partition", with(rolling(2)), 0, vec![2]),
        ("all below the partition", with(rolling(3)), 0, vec![]),
        ("the partition counts from the first ordinal", ordinals(1), 5, vec![6, 7]),
        ("OnDelete", with(json!({"type": "OnDelete"})), 0, vec![]),
    ] {
        assert_eq!(replaced(spec, first), expected, "{what}");
    }
}

#[test]
fn a_pod_that_will_be_replaced_says_by_what_and_what_to_do() {
    let set = set(json!({}));
    let why_old = why(&set, "logs-1", "logs-old").expect("it is replaced");
    for part in ["StatefulSet logs", "logs-new", "rollout status", "OnDelete", "partition"] {
        assert!(why_old.contains(part), "{why_old}");
    }
    assert_eq!(why(&set, "logs-1", "logs-new"), None, "it has the new revision");
    // Its controller deletes a pod without a revision as well.
    assert!(why(&set, "logs-1", "").is_some());
}

#[test] // proves RESTART-153
fn an_edit_that_the_controller_has_not_seen_may_replace_any_pod_that_is_covered() {
    let mut edited = set(json!({}));
    edited.metadata.generation = Some(3);
    let unseen = why(&edited, "logs-1", "logs-new").expect("it may be replaced");
    assert!(
        unseen.contains("generation 3") && unseen.contains("kube-controller-manager"),
        "{unseen}"
    );
    edited.status = None;
    assert!(why(&edited, "logs-1", "logs-new").is_some(), "never seen");

    let mut on_delete = set(json!({"updateStrategy": {"type": "OnDelete"}}));
    on_delete.metadata.generation = Some(3);
    assert_eq!(why(&on_delete, "logs-1", "logs-old"), None, "no edit replaces a pod");
}
