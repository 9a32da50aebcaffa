//! Kubernetes objects that users, controllers and the kubelet write.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A pod with the label `app=logs` that no kubelet has started.
pub fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "logs"}},
        "spec": {
            "containers": [{
                "name": "search",
                "image": "search",
                "args": ["run", "--config=/config", "--", "search"],
                "env": [{"name": "STAYPUT_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}],
                "volumeMounts": [{"name": "config", "mountPath": "/config"}],
            }],
            "volumes": [{"name": "config", "secret": {"secretName": format!("{name}-config")}}],
        },
    })
}

/// The status of a running pod, as the kubelet writes it.
pub fn pod_status(address: &str, ready: bool) -> Value {
    let ready = if ready { "True" } else { "False" };
    json!({"status": {
        "phase": "Running",
        "podIP": address,
        "conditions": [{"type": "Ready", "status": ready}],
    }})
}

/// A Secret. `allow` is the SearchCluster that may use it.
pub fn secret<'a>(
    name: &str,
    allow: Option<&str>,
    data: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Value {
    let data: BTreeMap<&str, &str> = data.into_iter().collect();
    let annotations = allow.map_or(json!({}), |cluster| json!({"stayput.dev/allow": cluster}));
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "annotations": annotations},
        "stringData": data,
    })
}
