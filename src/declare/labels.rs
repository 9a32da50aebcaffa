//! Labels and owner of every created object.

use serde_json::{Map, Value, json};

use crate::Cluster;

/// Label with the name of the SearchCluster.
pub const CLUSTER: &str = "stayput.dev/cluster";
/// Label with the name of the node set.
pub const NODE_SET: &str = "stayput.dev/node-set";

/// Labels of an object, and of pods. `set` is `None` for objects of the whole cluster.
pub(crate) fn labels(cluster: &Cluster, set: Option<&str>) -> Map<String, Value> {
    let mut labels = Map::new();
    labels.insert(CLUSTER.into(), cluster.name.clone().into());
    if let Some(set) = set {
        labels.insert(NODE_SET.into(), set.into());
    }
    labels
}

/// The metadata of an object.
pub(crate) fn metadata(cluster: &Cluster, name: &str, set: Option<&str>) -> Value {
    json!({
        "name": name,
        "namespace": cluster.namespace,
        "labels": labels(cluster, set),
        "ownerReferences": [{
            "apiVersion": "stayput.dev/v1alpha1",
            "kind": "SearchCluster",
            "name": cluster.name,
            "uid": cluster.uid,
            "controller": true,
            "blockOwnerDeletion": false,
        }],
    })
}
