//! The declared cluster.

use serde_json::{Map, Value};

use crate::Engine;

/// A declared cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Name of the SearchCluster; also `cluster.name`.
    pub name: String,
    /// Namespace of the SearchCluster.
    pub namespace: String,
    /// uid of the SearchCluster, which owns every object.
    pub uid: String,
    /// The engine on the nodes.
    pub engine: Engine,
    /// The manager in front of each engine.
    pub manager: Manager,
    /// The nodes.
    pub node_sets: Vec<NodeSet>,
}

/// How the managers are installed in the pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manager {
    /// Image with the program, for an init container; without it any image that has the program.
    pub image: Option<String>,
    /// Image of this version, for sets that are not there yet.
    pub image_of_new_sets: String,
    /// Port of the manager's API.
    pub port: u16,
    /// The service account that may stop and start engines: `namespace:name`.
    pub account: String,
}

/// Nodes that have the same config and the same pod template.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeSet {
    /// Name of the node set, unique in the cluster.
    pub name: String,
    /// Number of nodes.
    pub count: u32,
    /// Settings of the engine.
    pub config: Map<String, Value>,
    /// Pod template, merged over the one that the reconciler makes.
    pub pod_template: Value,
    /// `volumeClaimTemplates` as in a StatefulSet. The one named `data` is mounted as the engine's data.
    pub volume_claim_templates: Vec<Value>,
    /// `persistentVolumeClaimRetentionPolicy` as in a StatefulSet.
    pub claim_retention: Option<Value>,
}

impl Cluster {
    /// The node sets by name: their order in the declaration means nothing.
    pub(crate) fn sorted(&self) -> Vec<&NodeSet> {
        let mut sets: Vec<&NodeSet> = self.node_sets.iter().collect();
        sets.sort_by(|a, b| a.name.cmp(&b.name));
        sets
    }
}
