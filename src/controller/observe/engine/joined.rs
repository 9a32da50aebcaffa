//! The nodes that the engine lists: which of those under way are back, and where each has its data.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stayput_engine::Node;
use stayput_restart::{Ledger, Member};

use crate::pods::PodFacts;

/// Number of members without a new process among these nodes, by name and ephemeral id. Two nodes may have
/// one name.
pub(crate) fn not_back<'a>(
    members: impl Iterator<Item = &'a Member>,
    nodes: impl Iterator<Item = (&'a str, &'a str)>,
) -> usize {
    let by_name: BTreeMap<&str, &Member> =
        members.map(|member| (member.node.as_str(), member)).collect();
    let is_back = |(name, process): &(&str, &str)| {
        by_name.get(name).is_some_and(|member| member.ephemeral_id.as_deref() != Some(process))
    };
    let back: BTreeSet<&str> = nodes.filter(is_back).map(|(name, _)| name).collect();
    by_name.len() - back.len()
}

/// True in the first look that shows all nodes under way as joined, so that allocation, which we have
/// limited, is restored next. That needs nothing but the list of nodes. Not in the very first look: it has no
/// details of the other nodes.
pub(super) fn have_just_joined(ledger: &Ledger, before: Option<&[Node]>, now: &[Node]) -> bool {
    let joined = |nodes: &[Node]| are_back(ledger, nodes);
    let restores = ledger.debts.allocation.is_some() && ledger.under_way().next().is_some();
    restores && joined(now) && before.is_some_and(|before| !joined(before))
}

/// True if all nodes under way were back among these, and nothing waits for the cluster to come to rest after
/// that. Then only the report needs the health, and not at a time when the master has no tasks: it has many
/// while shards come back.
pub(super) fn nothing_waits_for_rest(ledger: &Ledger, nodes: &[Node]) -> bool {
    let restart = ledger.restart.as_ref().filter(|restart| !restart.has_scheduled());
    let is_last = restart.is_some() && ledger.queued.is_none();
    is_last && ledger.under_way().next().is_some() && are_back(ledger, nodes)
}

fn are_back(ledger: &Ledger, nodes: &[Node]) -> bool {
    let nodes = nodes.iter().map(|node| (node.name.as_str(), node.ephemeral_id.as_str()));
    not_back(ledger.under_way(), nodes) == 0
}

/// Last reported data directories of each pod's engine, by uid. An engine that ended has its data there
/// still.
#[derive(Debug, Default)]
pub(crate) struct DataPaths(BTreeMap<String, Vec<String>>);

impl DataPaths {
    /// Records the directories of the nodes that the engine lists, and forgets pods that are gone. Two nodes
    /// may have one name: then the directories of both count.
    pub(crate) fn remember(&mut self, pods: &[Arc<PodFacts>], nodes: &[Node]) {
        let there: BTreeSet<&str> = pods.iter().map(|facts| facts.uid.as_str()).collect();
        self.0.retain(|uid, _| there.contains(uid.as_str()));
        let mut told: BTreeMap<&str, BTreeSet<&String>> = BTreeMap::new();
        for node in nodes.iter().filter(|node| !node.data_paths.is_empty()) {
            told.entry(&node.name).or_default().extend(&node.data_paths);
        }
        for facts in pods {
            if let Some(paths) = told.get(facts.node.as_str()) {
                self.0.insert(facts.uid.clone(), paths.iter().copied().cloned().collect());
            }
        }
    }

    /// The data directories of this pod's engine; empty until it reports them.
    pub(crate) fn of(&self, uid: &str) -> &[String] {
        self.0.get(uid).map(Vec::as_slice).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
