//! What a decision about nodes that leave is made from.

use std::collections::{BTreeMap, BTreeSet};

use crate::{NodeSet, Observed, ObservedSet, names};

/// A StatefulSet of the cluster: how many nodes it has, and how many it is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// Name of the node set.
    pub name: String,
    /// Name of the StatefulSet.
    pub stateful_set: String,
    /// How many nodes it has.
    pub replicas: u32,
    /// How many of them stay.
    pub wanted: u32,
    /// Whether the declaration has it.
    pub is_declared: bool,
}

/// The sets of the SearchCluster `cluster` that are there, by name. Without a declaration, as of one
/// that is being deleted, every node stays: what was changed for those that were about to leave is
/// undone.
pub fn sets(cluster: &str, declared: Option<&[NodeSet]>, observed: &Observed) -> Vec<Set> {
    let of = |(name, there): (&String, &ObservedSet)| {
        let same = |set: &&NodeSet| set.name == *name;
        let count = match declared {
            Some(sets) => sets.iter().find(same).map(|set| set.count),
            None => Some(there.replicas),
        };
        Set {
            name: name.clone(),
            stateful_set: names::stateful_set(cluster, name),
            replicas: there.replicas,
            wanted: count.unwrap_or(0).min(there.replicas),
            is_declared: count.is_some(),
        }
    };
    observed.sets.iter().map(of).collect()
}

impl Set {
    /// The name of a node: that of its pod.
    pub(crate) fn node(&self, ordinal: u32) -> String {
        format!("{}-{ordinal}", self.stateful_set)
    }

    /// The nodes that leave.
    pub fn leaving(&self) -> impl Iterator<Item = String> {
        (self.wanted..self.replicas).map(|ordinal| self.node(ordinal))
    }

    /// The node that goes next: the one with the highest ordinal.
    pub(super) fn next(&self) -> Option<String> {
        (self.wanted < self.replicas).then(|| self.node(self.replicas - 1))
    }

    /// Whether a pod of this name is one of the set.
    pub(super) fn has(&self, pod: &str) -> bool {
        let ordinal = pod.strip_prefix(&self.stateful_set).and_then(|rest| rest.strip_prefix('-'));
        ordinal.is_some_and(|ordinal| ordinal.parse::<u32>().is_ok())
    }
}

/// What is known beside the StatefulSets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Names of all pods of the cluster, also of those that are being deleted.
    pub pods: BTreeSet<String>,
    /// `spec.paused`.
    pub paused: bool,
    /// Why no node is stopped now: no maintenance window is open.
    pub outside_windows: Option<String>,
    /// Why no node begins to leave: changes of the nodes come first.
    pub changes: Option<String>,
    /// Nodes that a restart has under way, that must be started, or that are kept stopped.
    pub busy: BTreeSet<String>,
    /// A restart has nodes under way.
    pub under_way: bool,
    /// Nodes whose voting exclusion for a restart may come again, because its request was slow.
    pub late_votes: BTreeSet<String>,
}

/// What the engine reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The nodes that it lists, by name.
    pub nodes: BTreeMap<String, SeenNode>,
    /// An index of which a primary has no node.
    pub without_primary: Option<String>,
    /// Closed indices that the engine does not move; it does not say on which nodes they are.
    pub immovable: BTreeSet<String>,
    /// None before Elasticsearch 7.
    pub votes: Option<Votes>,
    /// `cluster.routing.allocation.exclude._name`, read before the shards.
    pub excluded: Excluded,
}

/// A node in the engine's list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenNode {
    /// Its id.
    pub id: String,
    /// Whether it can be elected.
    pub is_master: bool,
    /// Its roles that hold shards.
    pub data_roles: BTreeSet<String>,
    /// It has not said what its roles are.
    pub roles_unknown: bool,
    /// How many copies of shards are on it.
    pub shards: usize,
    /// Why one of them does not move.
    pub stuck: Option<String>,
}

/// Who may vote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Votes {
    /// Ids of the nodes in one of the two voting configurations.
    pub voters: BTreeSet<String>,
    /// Names of the nodes that are excluded from voting.
    pub excluded: BTreeSet<String>,
}

/// The setting that excludes nodes from allocation. The transient value wins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excluded {
    /// The persistent value.
    pub persistent: Option<String>,
    /// The transient value.
    pub transient: Option<String>,
}
