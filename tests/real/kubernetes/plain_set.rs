//! A StatefulSet without stayput, with its own config and with probes that call the engine.

use serde_json::{Value, json};

/// `logs` in this namespace. Its engine has no TLS.
pub(super) fn plain_set(namespace: &str) -> Value {
    let probe = json!({"tcpSocket": {"port": 9200}});
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "logs", "namespace": namespace},
        "spec": {
            "serviceName": "logs",
            "selector": {"matchLabels": {"app": "logs"}},
            "template": {
                "metadata": {"labels": {"app": "logs"}},
                "spec": {
                    "containers": [{
                        "name": "opensearch",
                        "image": "opensearchproject/opensearch:2.19.3",
                        "livenessProbe": probe, "readinessProbe": probe, "startupProbe": probe,
                        "env": [{"name": "DISABLE_SECURITY_PLUGIN", "value": "true"}],
                        "volumeMounts": [{
                            "name": "config",
                            "mountPath": "/usr/share/opensearch/config/opensearch.yml",
                            "subPath": "opensearch.yml",
                        }],
                    }],
                    "volumes": [{"name": "config", "secret": {"secretName": "logs-config"}}],
                },
            },
        },
    })
}
