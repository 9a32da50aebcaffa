//! The pod that comes, as the apiserver is asked about it.

use serde_json::{Value, json};

use crate::observe::replacement::*;

fn read<T: serde::de::DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("an object of Kubernetes")
}

fn there() -> Pod {
    read(json!({
        "metadata": {
            "name": "logs-1", "namespace": "search", "uid": "u", "resourceVersion": "7",
            "labels": {
                "app": "logs", "controller-revision-hash": "logs-1", "injected": "by a webhook",
                "statefulset.kubernetes.io/pod-name": "logs-1",
            },
            "annotations": {"note": "of the old one"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "logs", "uid": "s",
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "nodeName": "n1", "hostname": "logs-1", "subdomain": "logs",
            "containers": [{"name": "search", "image": "a"}],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data-logs-1"}},
                {"name": "config", "secret": {"secretName": "old"}},
            ],
        },
    }))
}

#[test] // proves UPDATE-8
fn the_pod_that_comes_has_its_template_and_the_name_the_owner_and_the_claims_of_the_one_there() {
    let template = read(json!({
        "metadata": {"labels": {"app": "logs"}},
        "spec": {
            "containers": [{"name": "search", "image": "b"}],
            "volumes": [{"name": "config", "secret": {"secretName": "new"}}],
        },
    }));
    let new = serde_json::to_value(successor(there(), Some(template), "logs-2")).unwrap();
    let expected = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "logs-1", "namespace": "search",
            "labels": {
                "app": "logs", "controller-revision-hash": "logs-2",
                "statefulset.kubernetes.io/pod-name": "logs-1",
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "logs", "uid": "s",
                "controller": true,
            }],
        },
        "spec": {
            "hostname": "logs-1", "subdomain": "logs",
            "containers": [{"name": "search", "image": "b"}],
            "volumes": [
                {"name": "config", "secret": {"secretName": "new"}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "data-logs-1"}},
            ],
        },
    });
    assert_eq!(new, expected);
    let again = successor(there(), None, "logs-1").spec.unwrap();
    assert_eq!((again.node_name, again.volumes.unwrap().len()), (None, 2));
}

#[test]
fn a_quota_is_asked_about_what_is_requested_beyond_the_pod_that_goes() {
    let spec = |containers: Value| -> PodSpec { read(json!({"containers": containers})) };
    let sized = |memory: &str| {
        let limits = json!({"limits": {"memory": memory, "cpu": "1"}});
        spec(json!([{"name": "search", "resources": limits}]))
    };
    assert!(!requests_more(&sized("2Gi"), &sized("2048Mi")));
    assert!(!requests_more(&sized("2Gi"), &sized("1Gi")));
    assert!(requests_more(&sized("2Gi"), &sized("3Gi")));
    assert!(requests_more(&spec(json!([{"name": "search"}])), &sized("1Mi")));
    let two = spec(json!([{"name": "search"}, {"name": "sidecar"}]));
    assert!(requests_more(&spec(json!([{"name": "search"}])), &two));
}
