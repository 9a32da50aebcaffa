//! The ledger in the SearchCluster's status: restarts under way, debts and history. It is changed
//! only by compare-and-set, and a step is written here before it is done.

mod change;
mod debt;
mod restart;
mod written;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{IgnoredChanges, KnownConfigs, Request, Strategy, Time};
use stayput_api::ConfigChoice;

pub(super) use change::{LedgerChange, RestartChange};
pub use debt::{
    AllocationBefore, AllocationDebt, Debts, ExcludedBefore, ExclusionDebt, Leaving, RecordDebt,
    RemovedExclusion, StartDebt, debts_due,
};
pub use restart::{
    Compensation, Direction, Ending, Member, MemberStep, MemberUpdate, Once, Restart, Stays,
};

/// How many restarts the history keeps.
pub const MAX_HISTORY: usize = 20;
/// How many ids of requests are remembered, so that no request is carried out twice.
pub const MAX_HANDLED: usize = 100;

/// The most nodes of one restart: more may not fit into one object of the apiserver wherever the restart is.
pub const MAX_MEMBERS: usize = 2_000;

/// The part of the status that decisions are made from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// The phase on each object of an operator as it was last seen, by kind and name; empty for none. It is
    /// carried out once and stays there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub operator_phases: BTreeMap<String, String>,
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
    pub still_shown_since: Option<Time>,
    /// Uuid of the engine's cluster, from the first restart on: another one behind the same
    /// address is not ours to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_uuid: Option<String>,
}

/// A node kept stopped (`spec.stopped`, or the annotation on its pod).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

    /// True if the pod's engine must be started (a debt).
    pub(crate) fn owes_start(&self, uid: &str) -> bool {
        self.debts.start.iter().any(|debt| debt.pod_uid == uid)
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

impl Ledger {
    /// True if one of these times is later than `latest`.
    pub(crate) fn has_times_after(&self, latest: Time) -> bool {
        let is_ahead = |at: Option<Time>| at.is_some_and(|at| at > latest);
        let of_update = |update: &MemberUpdate| [update.late_since, update.hindered_since];
        let of_restart = self.restart.iter().flat_map(|one| {
            [Some(one.started), one.began, one.stuck_since, one.frozen].into_iter()
        });
        let of_members = self.members().any(|one| {
            [Some(one.since), one.absent_since, one.silent_since].into_iter().any(is_ahead)
                || one.update.iter().flat_map(|update| of_update(update)).any(is_ahead)
        });
        let of_starts = self.debts.start.iter().flat_map(|debt| [debt.since, debt.absent_since]);
        let of_exclusions = self.removed_exclusions.iter().map(|one| Some(one.at));
        let of_all = [self.still_shown_since, self.history.last().map(HistoryEntry::ended)];
        of_members || of_restart.chain(of_starts).chain(of_exclusions).chain(of_all).any(is_ahead)
    }

    /// Sets each of these times that is later than `latest` to `now`.
    fn correct_times(&mut self, latest: Time, now: Time) {
        self.change_times(|at| {
            if *at > latest {
                *at = now;
            }
        });
        if let Some(last) = self.history.last_mut().filter(|last| last.ended() > latest) {
            last.started = Time(now.0.saturating_sub(last.seconds.saturating_mul(1000)));
        }
    }

    /// Moves these times with a clock that has jumped forward. The history stays: people read it.
    fn move_times(&mut self, jumped: u64) {
        self.change_times(|at| *at = at.plus(jumped));
    }

    fn change_times(&mut self, one: impl Fn(&mut Time)) {
        let all = |times: &mut [&mut Option<Time>]| {
            times.iter_mut().filter_map(|at| at.as_mut()).for_each(&one);
        };
        if let Some(restart) = &mut self.restart {
            one(&mut restart.started);
            all(&mut [&mut restart.began, &mut restart.stuck_since, &mut restart.frozen]);
            for member in &mut restart.members {
                one(&mut member.since);
                all(&mut [&mut member.absent_since, &mut member.silent_since]);
                if let Some(update) = &mut member.update {
                    all(&mut [&mut update.late_since, &mut update.hindered_since]);
                }
            }
        }
        for StartDebt { since, absent_since, .. } in &mut self.debts.start {
            all(&mut [since, absent_since]);
        }
        for RemovedExclusion { at, .. } in &mut self.removed_exclusions {
            one(at);
        }
        all(&mut [&mut self.still_shown_since]);
    }
}

/// Goal of our last restart of a kind: the configs or templates that nodes were to have. Each is the
/// beginning of a checksum, so that many fit into a ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tried {
    /// Id of that request. If another one of its kind came later, an earlier version has made that.
    pub id: String,
    /// The wanted ones that nodes lacked, without those that were given up before.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub wanted: BTreeSet<String>,
    /// The wanted ones that were given up before.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub given_up: BTreeSet<String>,
    /// Nodes of which it was not known what they were to have.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub unknown: BTreeSet<String>,
}

/// Kind of a restart that we request ourselves, by its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnKind {
    Configs,
    Templates,
}

impl OwnKind {
    /// The beginning of the ids of such requests.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Configs => "config",
            Self::Templates => "update",
        }
    }
}

/// How a restart ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// Every node runs in a new process on the config expected, proven.
    Done,
    /// Given up; engines we stopped were started again.
    Aborted,
    /// The new config did not come up; the last good one was put back.
    RolledBack,
    /// Another client sent a manager a request in the middle.
    Interfered,
    /// Another request took its place.
    Superseded,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 5] =
        [Self::Done, Self::Aborted, Self::RolledBack, Self::Interfered, Self::Superseded];

    /// Name of the outcome in status, history, events and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Aborted => "aborted",
            Self::RolledBack => "rolledBack",
            Self::Interfered => "interfered",
            Self::Superseded => "superseded",
        }
    }
}

/// One restart that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Id of the request.
    pub id: String,
    /// How the nodes were restarted.
    pub strategy: Strategy,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it ended so, in a sentence; empty if `done` needs no explanation.
    #[serde(default)]
    pub reason: String,
    /// When it was accepted.
    pub started: Time,
    /// When the first node got its slot; absent if the restart ended before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Time>,
    /// How long it took, in seconds.
    pub seconds: u64,
    /// How many nodes were restarted.
    pub nodes: u32,
    /// How many of them by each step: `{"container": 3}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<String, u32>,
    /// Predicates that were not evaluated for it because its request said so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped_rules: Vec<String>,
    /// True if the request allowed stops that cost the quorum, or the last copy of a shard.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allowed_outage: bool,
}

impl HistoryEntry {
    /// When the restart ended.
    pub const fn ended(&self) -> Time {
        self.started.plus(self.seconds.saturating_mul(1000))
    }

    /// True if nodes may have been stopped for the restart, and no other restart went on with them.
    /// Entries of earlier versions lack the time at which the first node got its slot.
    pub fn is_to_be_checked(&self) -> bool {
        let may_have_stopped = self.began.is_some() || self.nodes > 0;
        may_have_stopped && self.outcome != Outcome::Superseded
    }
}

/// How a pod's last restart ended: value of the annotation `stayput.dev/last-restart`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastRestart {
    /// Id of the request.
    pub id: String,
    /// How it ended for this pod.
    pub outcome: Outcome,
    /// Why, in a sentence; empty if `done` needs no explanation.
    #[serde(default)]
    pub reason: String,
    /// When this pod's turn began.
    pub started: Time,
    /// How long it took, in seconds.
    pub seconds: u64,
}

/// The result of one node that its pod may not show yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeResult {
    /// Uid of the pod.
    pub pod_uid: String,
    /// The result that the pod is to show.
    pub last: LastRestart,
}

#[cfg(test)]
mod tests;
