//! The objects that people and controllers would have made.

use serde_json::{Map, Value, json};

use super::engine::Network;

/// The namespace of everything.
pub(super) const NAMESPACE: &str = "default";

/// The SearchCluster.
pub(super) fn search_cluster(network: &Network) -> Value {
    json!({
        "apiVersion": "stayput.dev/v1alpha1",
        "kind": "SearchCluster",
        "metadata": {"name": "logs", "namespace": NAMESPACE},
        "spec": {
            "pods": {"selector": {"matchLabels": {"app": "logs"}}},
            "engine": {"scheme": "http", "port": network.http},
            "manager": {
                "port": network.manager,
                "caSecret": "manager-ca",
                "auth": {"jwtKeySecret": "manager-key"},
            },
            "config": {"sources": [{"secret": "{pod}-config"}]},
            "restart": {"drain": "0s"},
        },
    })
}

/// A pod, before anybody has run it.
pub(super) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": "logs"}},
        "spec": {"containers": [{"name": "search", "image": "search"}]},
    })
}

/// What the kubelet says of a pod that runs.
pub(super) fn pod_status(address: &str) -> Value {
    json!({"status": {
        "phase": "Running",
        "podIP": address,
        "conditions": [{"type": "Ready", "status": "True"}],
    }})
}

/// A Secret that this SearchCluster may use.
pub(super) fn secret(name: &str, data: &[(String, String)]) -> Value {
    let data: Map<String, Value> =
        data.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name, "namespace": NAMESPACE, "annotations": {"stayput.dev/allow": "logs"},
        },
        "stringData": data,
    })
}
