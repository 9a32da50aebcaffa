//! The ledger in the SearchCluster's status: restarts under way, debts and history. It is changed
//! only by compare-and-set, and a step is written here before it is done.

mod change;
mod debt;
mod history;
mod restart;
mod times;
mod tried;
mod written;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{IgnoredChanges, KnownConfigs, Request, Time};
use stayput_api::ConfigChoice;

pub(super) use change::{LedgerChange, RestartChange};
pub use debt::{
    AllocationBefore, AllocationDebt, Debts, ExclusionDebt, RecordDebt, RemovedExclusion, StartDebt,
};
pub use history::{HistoryEntry, LastRestart, NodeResult, Outcome};
pub use restart::{
    Compensation, Direction, Ending, Member, MemberStep, MemberUpdate, Once, Restart, Stays,
};

pub(crate) use times::end_of;
pub(crate) use tried::OwnKind;
pub use tried::Tried;

/// How many restarts the history keeps.
pub const MAX_HISTORY: usize = 20;
/// How many ids of requests are remembered, so that no request is carried out twice.
pub const MAX_HANDLED: usize = 100;

/// The most nodes of one restart: more may not fit into one object of the apiserver wherever the restart is.
pub const MAX_MEMBERS: usize = 2_000;

/// The part of the status that decisions are made from.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Ledger {
    /// The restart under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restart>,
    /// The one request that waits for it to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<Request>,
    /// Debts: they outlive restarts and block new stops.
    #[serde(default, skip_serializing_if = "Debts::is_empty")]
    pub debts: Debts,
    /// Voting exclusions that were removed a short while ago.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_exclusions: Vec<RemovedExclusion>,
    /// Nodes that are kept stopped on request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_stopped: Vec<KeptStopped>,
    /// Ids of the requests that were accepted, latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handled: Vec<String>,
    /// The phase on the SearchCluster that somebody writes again whenever it is removed. It was
    /// carried out once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_phase: Option<String>,
    /// Uids of pods with a phase that is older than the status: it is not carried out.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub old_phases: BTreeSet<String>,
    /// Restarts that have ended, latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
    /// The result of the node that ended together with its restart, for its pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_result: Option<NodeResult>,
    /// Settings of the configs that engines run on: sources have only those of the wanted configs.
    #[serde(default, skip_serializing_if = "KnownConfigs::is_empty")]
    pub configs: KnownConfigs,
    /// Configs that count as equal, since they differ only in ignored keys.
    #[serde(default, skip_serializing_if = "IgnoredChanges::is_empty")]
    pub ignored_changes: IgnoredChanges,
    /// Goal of our last restart for changed configs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried_configs: Option<Box<Tried>>,
    /// Goal of our last restart for changed pod templates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried_templates: Option<Box<Tried>>,
    /// Since when it is seen that pods still show an old phase although the SearchCluster is being
    /// deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub still_shown_since: Option<Time>,
    /// Uuid of the engine's cluster, from the first restart on: another one behind the same
    /// address is not ours to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_uuid: Option<String>,
}

/// A node kept stopped (`spec.stopped`, or the annotation on its pod).
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct KeptStopped {
    /// Uid of the pod.
    pub pod_uid: String,
    /// Name of the node.
    pub node: String,
    /// Sequence of our request to its manager.
    pub sequence: u64,
    /// True if the node is no longer to be kept stopped: the request is a start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub releasing: bool,
    /// The config that the node is started on.
    #[serde(default, skip_serializing_if = "is_mounted")]
    #[schemars(with = "String")]
    pub config: ConfigChoice,
    /// Checksum of the mounted config that it is started on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

fn is_mounted(config: &ConfigChoice) -> bool {
    *config == ConfigChoice::Mounted
}

impl Ledger {
    /// The members of the restart under way; empty if there is none.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.restart.iter().flat_map(|restart| &restart.members)
    }

    /// Puts the members into the order in which they are read.
    pub(super) fn sort_members(&mut self) {
        if let Some(restart) = &mut self.restart {
            written::sort(&mut restart.members);
        }
    }

    /// The members that hold a slot.
    pub fn under_way(&self) -> impl Iterator<Item = &Member> {
        self.members().filter(|member| member.is_under_way())
    }

    /// Uids of the pods whose nodes hold a slot, must be started (a debt), or are kept stopped.
    pub fn busy_pods(&self) -> impl Iterator<Item = &str> {
        let kept = self.kept_stopped.iter().map(|kept| kept.pod_uid.as_str());
        self.unreleased_pods().chain(kept)
    }

    /// Uids of the pods whose nodes hold a slot, or must be started (a debt).
    pub fn unreleased_pods(&self) -> impl Iterator<Item = &str> {
        let members = self.under_way().map(|member| member.pod_uid.as_str());
        members.chain(self.debts.start.iter().map(|debt| debt.pod_uid.as_str()))
    }

    /// Uids of the pods that are owed something: a start, allocation as it was, or the end of a record.
    pub fn owed_pods(&self) -> impl Iterator<Item = &str> {
        let holders = self.debts.allocation.iter().flat_map(|debt| &debt.holders);
        let records = self.debts.records.iter().map(|debt| debt.pod_uid.as_str());
        self.unreleased_pods().chain(holders.map(String::as_str)).chain(records)
    }

    /// True if the pod neither holds a slot nor must be started (a debt).
    pub(super) fn is_released(&self, uid: &str) -> bool {
        self.unreleased_pods().all(|other| other != uid)
    }

    /// True if a request with this id was accepted before.
    pub fn has_handled(&self, id: &str) -> bool {
        self.handled.iter().any(|handled| handled == id)
    }

    /// Remembers that the request was accepted, and drops the oldest id but never `keep`.
    pub fn remember(&mut self, id: &str, keep: Option<&str>) {
        self.handled.retain(|handled| handled != id);
        self.handled.push(id.to_owned());
        while self.handled.len() > MAX_HANDLED {
            let oldest = self.handled.iter().position(|handled| Some(handled.as_str()) != keep);
            self.handled.remove(oldest.unwrap_or(0));
        }
    }

    /// The goal of our last restart of this kind, if more than its id is known.
    pub(super) fn tried(&self, kind: OwnKind) -> Option<&Tried> {
        match kind {
            OwnKind::Configs => self.tried_configs.as_deref(),
            OwnKind::Templates => self.tried_templates.as_deref(),
        }
    }

    /// The last restart that has ended, for gates after a restart.
    pub fn last_to_check(&self) -> Option<&HistoryEntry> {
        self.history.iter().rev().find(|entry| entry.is_to_be_checked())
    }

    /// Adds to the history.
    pub fn record(&mut self, entry: HistoryEntry) {
        self.history.push(entry);
        let excess = self.history.len().saturating_sub(MAX_HISTORY);
        self.history.drain(..excess);
    }
}
