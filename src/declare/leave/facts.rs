//! Inputs of a decision about nodes that leave, and the changes on the engine that it must undo.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Action;
use crate::object::stateful_set_name;
use crate::{NodeSet, Observed, ObservedSet};

/// A StatefulSet of the cluster, with its current and its wanted number of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// Name of the node set.
    pub name: String,
    /// Name of the StatefulSet.
    pub stateful_set: String,
    /// Current number of nodes.
    pub replicas: u32,
    /// Number of nodes that stay.
    pub wanted: u32,
    /// True if the declaration has the set.
    pub is_declared: bool,
}

/// The existing sets of the SearchCluster `cluster`, by name. Without a declaration, such as while it is
/// being deleted, every node stays: the changes for nodes that were about to leave are undone.
pub fn sets(cluster: &str, declared: Option<&[NodeSet]>, observed: &Observed) -> Vec<Set> {
    let of = |(name, there): (&String, &ObservedSet)| {
        let same = |set: &&NodeSet| set.name == *name;
        let count = match declared {
            Some(sets) => sets.iter().find(same).map(|set| set.count),
            None => Some(there.replicas),
        };
        Set {
            name: name.clone(),
            stateful_set: stateful_set_name(cluster, name),
            replicas: there.replicas,
            wanted: count.unwrap_or(0).min(there.replicas),
            is_declared: count.is_some(),
        }
    };
    observed.sets.iter().map(of).collect()
}

impl Set {
    /// The name of a node, which is that of its pod.
    pub(crate) fn node(&self, ordinal: u32) -> String {
        format!("{}-{ordinal}", self.stateful_set)
    }

    /// The nodes that leave.
    pub fn leaving(&self) -> impl Iterator<Item = String> {
        (self.wanted..self.replicas).map(|ordinal| self.node(ordinal))
    }

    /// The next node to leave: the one with the highest ordinal.
    pub(super) fn next(&self) -> Option<String> {
        (self.wanted < self.replicas).then(|| self.node(self.replicas - 1))
    }

    /// True if a pod of this name belongs to the set.
    pub(super) fn has(&self, pod: &str) -> bool {
        let ordinal = pod.strip_prefix(&self.stateful_set).and_then(|rest| rest.strip_prefix('-'));
        ordinal.is_some_and(|ordinal| ordinal.parse::<u32>().is_ok())
    }
}

/// Facts beside the StatefulSets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaveFacts {
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
    /// True if a restart has nodes under way.
    pub under_way: bool,
    /// Nodes whose voting exclusion for a restart may come again, because its request was slow.
    pub late_votes: BTreeSet<String>,
}

/// State of the engine, as it reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The nodes that the engine lists, by name.
    pub nodes: BTreeMap<String, SeenNode>,
    /// An index of which a primary has no node.
    pub without_primary: Option<String>,
    /// Closed indices that the engine does not move; it does not say on which nodes they are.
    pub immovable: BTreeSet<String>,
    /// Voting configurations; absent before Elasticsearch 7.
    pub votes: Option<Votes>,
    /// `cluster.routing.allocation.exclude._name`, read before the shards.
    pub excluded: Excluded,
}

/// A node in the engine's list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenNode {
    /// Id of the node.
    pub id: String,
    /// True if the node can be elected.
    pub is_master: bool,
    /// The node's roles that hold shards.
    pub data_roles: BTreeSet<String>,
    /// True if the node has not reported its roles.
    pub roles_unknown: bool,
    /// Number of shard copies on the node.
    pub shards: usize,
    /// Why one of the shards does not move.
    pub stuck: Option<String>,
}

/// Voters, and nodes excluded from voting.
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

/// Changes on the engine for nodes that leave. They are undone once a node has left, or stays after
/// all.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Leaving {
    /// Names of the nodes that are excluded from allocation because they leave.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub nodes: BTreeSet<String>,
    /// The persistent exclusion before ours, if ours was added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent: Option<ExcludedBefore>,
    /// The transient exclusion before ours, if ours was added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transient: Option<ExcludedBefore>,
    /// The node that is excluded from voting because it leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voter: Option<String>,
}

/// `cluster.routing.allocation.exclude._name` before us. Unset is a value.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct ExcludedBefore {
    /// The value as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl Leaving {
    /// Nothing is to be undone.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The names in the setting.
fn names(value: Option<&str>) -> Vec<&str> {
    let names = value.unwrap_or_default().split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).collect()
}

/// The value with `add` and without `remove`. Names that a person had there before stay. If only those
/// are left, the value is written as it was.
pub(super) fn merged(
    value: Option<&str>,
    before: &ExcludedBefore,
    add: &BTreeSet<String>,
    remove: &BTreeSet<String>,
) -> Option<String> {
    let (now, of_person) = (names(value), names(before.value.as_deref()));
    let mut wanted = now.clone();
    wanted.retain(|name| !remove.contains(*name) || of_person.contains(name));
    wanted.extend(add.iter().map(String::as_str).filter(|name| !now.contains(name)));
    if wanted == now {
        return value.map(str::to_owned);
    }
    if wanted == of_person {
        return before.value.clone();
    }
    (!wanted.is_empty()).then(|| wanted.join(","))
}

/// The next action so that exactly `keep` of our nodes are excluded, until they are and it is
/// written down.
pub(super) fn exclude(seen: &Seen, debts: &Leaving, keep: &BTreeSet<String>) -> Option<Action> {
    let there = &seen.excluded;
    let wins = there.transient.is_some();
    let mut written = debts.clone();
    written.nodes.extend(keep.iter().cloned());
    let add = |wins: bool| if wins { keep.clone() } else { BTreeSet::new() };
    let lacks = |value: Option<&str>| !keep.iter().all(|name| names(value).contains(&&**name));
    if wins && lacks(there.transient.as_deref()) {
        written.transient.get_or_insert(ExcludedBefore { value: there.transient.clone() });
    } else if !wins && lacks(there.persistent.as_deref()) {
        written.persistent.get_or_insert(ExcludedBefore { value: there.persistent.clone() });
    }
    if written != *debts {
        return Some(Action::Write(written));
    }
    let remove: BTreeSet<String> = debts.nodes.difference(keep).cloned().collect();
    let level = |value: &Option<String>, before: &Option<ExcludedBefore>, wins: bool| {
        let before = before.as_ref()?;
        let wanted = merged(value.as_deref(), before, &add(wins), &remove);
        (wanted != *value).then_some(wanted)
    };
    let persistent = level(&there.persistent, &debts.persistent, !wins);
    let transient = level(&there.transient, &debts.transient, wins);
    if persistent.is_some() || transient.is_some() {
        return Some(Action::Exclude { persistent, transient });
    }
    if remove.is_empty() {
        return None;
    }
    written.nodes.clone_from(keep);
    if keep.is_empty() {
        (written.persistent, written.transient) = (None, None);
    }
    Some(Action::Write(written))
}
