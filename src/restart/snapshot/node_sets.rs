//! The node sets of a declared cluster from which nodes leave.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Leaving;
use crate::snapshot::set_and_ordinal;

/// The node sets of a declared cluster while nodes leave it, or have left settings behind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSets {
    /// Every node set that has a StatefulSet, by name.
    pub sets: Vec<NodeSet>,
    /// Why not all declared objects are made yet, for people: new nodes come before others leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
    /// Shards of the nodes that leave, by name of the node, for each that the engine lists. Without an entry,
    /// the shards of such a node are not known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shards: BTreeMap<String, LeavingShards>,
}

/// A node set of a declared cluster, with its current and its wanted number of nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSet {
    /// Name of the node set.
    pub name: String,
    /// Name of its StatefulSet.
    pub stateful_set: String,
    /// Current number of nodes.
    pub replicas: u32,
    /// Number of nodes that stay.
    pub wanted: u32,
    /// True if the declaration has the set.
    pub is_declared: bool,
}

/// Shard copies on a node that leaves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeavingShards {
    /// Number of copies on the node, with those that are being moved to it.
    pub count: usize,
    /// Why one of them does not move, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<String>,
}

impl NodeSets {
    /// Names of the nodes that leave.
    pub(crate) fn leaving(&self) -> BTreeSet<String> {
        self.sets.iter().flat_map(NodeSet::leaving).collect()
    }

    /// Names of the nodes that leave, and of those for which something is owed.
    pub fn concerned(&self, debts: &Leaving) -> BTreeSet<String> {
        self.leaving().union(&debts.nodes).cloned().collect()
    }
}

impl NodeSet {
    /// True if nodes leave the set, or the set itself is not declared any more.
    pub fn shrinks(&self) -> bool {
        self.wanted < self.replicas || !self.is_declared
    }

    /// Name of a node, which is that of its pod.
    pub(crate) fn node(&self, ordinal: u32) -> String {
        format!("{}-{ordinal}", self.stateful_set)
    }

    /// Names of the nodes that leave.
    pub(crate) fn leaving(&self) -> impl Iterator<Item = String> {
        (self.wanted..self.replicas).map(|ordinal| self.node(ordinal))
    }

    /// Names of the nodes that stay.
    pub(crate) fn staying(&self) -> impl Iterator<Item = String> {
        (0..self.wanted).map(|ordinal| self.node(ordinal))
    }

    /// The next node to leave: the one with the highest ordinal.
    pub(crate) fn next(&self) -> Option<String> {
        (self.wanted < self.replicas).then(|| self.node(self.replicas - 1))
    }

    /// True if a pod of this name belongs to the set.
    pub(crate) fn has(&self, pod: &str) -> bool {
        matches!(set_and_ordinal(pod), (set, Some(_)) if set == self.stateful_set)
    }
}
