//! The SearchCluster, as a user would write it.

use serde_json::{Value, json};

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
