//! The names of the first masters: a cluster is formed by them once, and never again.
//!
//! They are in a ConfigMap and reach the config by a variable of the container. The config itself
//! stays the same when they are emptied, so that no node is restarted for it; engines leave out a
//! setting whose value is empty. A container that is made later has no names, and can only join.

use serde_json::{Value, json};
use stayput_reuse::IGNORE;

use crate::labels::metadata;
use crate::names;
use crate::roles::roles;
use crate::{Cluster, Kind, Object, Observed};

/// The variable, and the key in the ConfigMap.
pub(crate) const VARIABLE: &str = "INITIAL_MASTER_NODES";

/// The names; none if the cluster has formed. They stay as they were written first: nodes that
/// begin with different names could form two clusters.
pub(crate) fn initial_masters(cluster: &Cluster, observed: &Observed) -> Vec<String> {
    if observed.formed || cluster.engine.has_minimum_master_nodes() {
        return Vec::new();
    }
    match &observed.bootstrap {
        Some(written) => written.clone(),
        // Written before any StatefulSet: it was lost since. Nodes that are there have formed one.
        None if !observed.sets.is_empty() => Vec::new(),
        None => masters(cluster),
    }
}

/// The names of all master-eligible nodes.
fn masters(cluster: &Cluster) -> Vec<String> {
    let sets = cluster.sorted().into_iter().filter(|set| roles(set).master);
    sets.flat_map(|set| {
        let name = names::stateful_set(&cluster.name, &set.name);
        (0..set.count).map(move |ordinal| format!("{name}-{ordinal}"))
    })
    .collect()
}

pub(crate) fn config_map(cluster: &Cluster, initial: &[String]) -> Object {
    let name = names::bootstrap(&cluster.name);
    let mut metadata = metadata(cluster, &name, None);
    metadata["annotations"] = json!({ IGNORE: "true" });
    let body = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": { VARIABLE: initial.join(",") },
    });
    Object { kind: Kind::ConfigMap, name, body }
}

/// What [`config_map`] wrote, from the object as it is there.
pub fn first_masters(config_map: &Value) -> Vec<String> {
    let written = config_map["data"][VARIABLE].as_str().unwrap_or_default();
    written.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The variable of the engine's container.
pub(crate) fn variable(cluster: &Cluster) -> Value {
    let from = json!({ "name": names::bootstrap(&cluster.name), "key": VARIABLE });
    json!({ "name": VARIABLE, "valueFrom": { "configMapKeyRef": from } })
}
