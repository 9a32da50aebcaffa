//! Patches of living pods: what they change, and what they require.

use k8s_openapi::api::core::v1::Pod;

use super::*;
use crate::pods::Reading;

fn facts(labels: Value, annotations: Value) -> PodFacts {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {
            "name": "logs-0", "namespace": "search", "uid": "u", "resourceVersion": "7",
            "labels": labels, "annotations": annotations,
        },
        "spec": {
            "containers": [
                {"name": "sidecar", "image": "s:1"},
                {"name": "search", "image": "e:1",
                 "resources": {"limits": {"memory": "1Gi"}}},
            ],
            "initContainers": [{"name": "proxy", "image": "p:1", "restartPolicy": "Always"}],
        },
    }))
    .expect("a pod");
    let reading = Reading { updates: true, ..Reading::default() };
    PodFacts::of(&pod, &reading).expect("its facts")
}

fn change(seen: Option<&str>, wanted: Option<&str>) -> Change {
    Change { seen: seen.map(str::to_owned), wanted: wanted.map(str::to_owned) }
}

fn changes<const N: usize>(all: [(&str, Change); N]) -> BTreeMap<String, Change> {
    all.into_iter().map(|(key, change)| (key.to_owned(), change)).collect()
}

/// A label's key may have a slash, and a pod may have no annotations at all.
#[test] // proves RESTART-63, UPDATE-3
fn labels_and_annotations_change_in_one_patch_that_tests_all_it_has_seen() {
    let labels = changes([
        ("example.org/tier", change(None, Some("hot"))),
        ("old", change(Some("yes"), None)),
    ]);
    let annotations = changes([("note", change(None, Some("new")))]);
    let pod = facts(json!({"old": "yes"}), json!({}));
    assert_eq!(
        json!(revision(&pod, &labels, &annotations)),
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "u"},
            {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
            {"op": "test", "path": "/metadata/labels/example.org~1tier", "value": null},
            {"op": "test", "path": "/metadata/labels/old", "value": "yes"},
            {"op": "test", "path": "/metadata/annotations", "value": null},
            {"op": "add", "path": "/metadata/labels/example.org~1tier", "value": "hot"},
            {"op": "remove", "path": "/metadata/labels/old"},
            {"op": "add", "path": "/metadata/annotations", "value": {"note": "new"}},
        ])
    );
}

#[test] // proves UPDATE-3
fn images_and_sizes_go_to_the_container_of_that_name_wherever_it_is() {
    let pod = facts(json!({"app": "logs"}), json!({}));
    let images_of = changes([
        ("proxy", change(Some("p:1"), Some("p:2"))),
        ("search", change(Some("e:1"), Some("e:2"))),
    ]);
    let patch = images(&pod, On::ThisVersion, &images_of).expect("a patch");
    assert_eq!(
        json!(patch),
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "u"},
            {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
            {"op": "test", "path": "/spec/initContainers/0/name", "value": "proxy"},
            {"op": "test", "path": "/spec/initContainers/0/image", "value": "p:1"},
            {"op": "test", "path": "/spec/containers/1/name", "value": "search"},
            {"op": "test", "path": "/spec/containers/1/image", "value": "e:1"},
            {"op": "replace", "path": "/spec/initContainers/0/image", "value": "p:2"},
            {"op": "replace", "path": "/spec/containers/1/image", "value": "e:2"},
        ])
    );
    let (seen, wanted) = (r#"{"limits":{"memory":"1Gi"}}"#, r#"{"limits":{"memory":"2Gi"}}"#);
    let size = changes([("search", change(Some(seen), Some(wanted)))]);
    let patch = resources(&pod, On::ThisVersion, &size).expect("a patch");
    assert_eq!(
        json!(patch[3..]),
        json!([
            {"op": "test", "path": "/spec/containers/1/resources",
             "value": {"limits": {"memory": "1Gi"}}},
            {"op": "replace", "path": "/spec/containers/1/resources",
             "value": {"limits": {"memory": "2Gi"}}},
        ])
    );
    let gone = changes([("gone", change(Some("a"), Some("b")))]);
    assert!(matches!(images(&pod, On::ThisVersion, &gone), Err(Failure::NoContainer { .. })));
}

/// A restart needs the finalizer, and finalizers of others stay.
#[test] // proves RESTART-140
fn a_phase_is_claimed_with_the_finalizer_in_one_patch() {
    let cluster = json!({
        "apiVersion": "stayput.dev/v1alpha1",
        "kind": "SearchCluster",
        "metadata": {
            "name": "logs", "uid": "u", "resourceVersion": "7",
            "annotations": {PHASE: "schedule-rolling"},
            "finalizers": ["example.org/other"],
        },
        "spec": {
            "pods": {"selector": {"matchLabels": {"app": "logs"}}},
            "engine": {"scheme": "http"},
            "manager": {"caSecret": "ca", "auth": {"jwtKeySecret": "key"}},
        },
    });
    let mut cluster: SearchCluster = serde_json::from_value(cluster).expect("a SearchCluster");
    let phase = "/metadata/annotations/elasticsearch.k8s.elastic.co~1restart-phase";
    let wanted = json!([
        {"op": "test", "path": "/metadata/uid", "value": "u"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "test", "path": phase, "value": "schedule-rolling"},
        {"op": "remove", "path": phase},
        {"op": "add", "path": "/metadata/annotations/stayput.dev~1restart-request", "value": "{}"},
        {"op": "add", "path": "/metadata/finalizers",
         "value": ["example.org/other", FINALIZER]},
    ]);
    assert_eq!(json!(claim(&cluster, "schedule-rolling", "{}")), wanted);
    let ours = || FINALIZER.to_owned();
    cluster.metadata.finalizers = Some(vec!["example.org/other".to_owned(), ours()]);
    assert_eq!(json!(claim(&cluster, "schedule-rolling", "{}")), wanted, "it is there once");
}
