//! The declared cluster.

use serde_json::{Map, Value};

use crate::Engine;

/// A declared cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Name of the SearchCluster; also `cluster.name`.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its uid: it owns every object.
    pub uid: String,
    /// What runs on the nodes.
    pub engine: Engine,
    /// What runs in front of it.
    pub manager: Manager,
    /// The nodes.
    pub node_sets: Vec<NodeSet>,
}

/// How the managers are installed in the pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manager {
    /// Image with the program, for an init container; none if any will do.
    pub image: Option<String>,
    /// Image of this version, for sets that are not there yet.
    pub image_of_new_sets: String,
    /// Port of its API.
    pub port: u16,
    /// The service account that may stop and start engines: `namespace:name`.
    pub account: String,
}

/// Nodes that have the same config and the same pod template.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeSet {
    /// Its name, unique in the cluster.
    pub name: String,
    /// How many nodes.
    pub count: u32,
    /// Settings of the engine.
    pub config: Map<String, Value>,
    /// Merged over the template that the reconciler makes.
    pub pod_template: Value,
    /// As in a StatefulSet. The one named `data` is mounted as the engine's data.
    pub volume_claim_templates: Vec<Value>,
    /// As in a StatefulSet: what becomes of the claims.
    pub claim_retention: Option<Value>,
}

impl Cluster {
    /// By name: their order in the declaration means nothing.
    pub(crate) fn sorted(&self) -> Vec<&NodeSet> {
        let mut sets: Vec<&NodeSet> = self.node_sets.iter().collect();
        sets.sort_by(|a, b| a.name.cmp(&b.name));
        sets
    }
}
