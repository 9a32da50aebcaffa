//! Decisions about restarting a whole cluster: data in, data out.
//!
//! [`plan()`] reads one [`Snapshot`] and decides what to do now, and why the other nodes wait. It
//! has no memory but the [`Ledger`] and no clock but [`Snapshot::now`]. Any process may call it at
//! any time, also on a stale or partial snapshot: the compare-and-set of the ledger and the
//! sequences in it protect against wrong actions.

#![deny(clippy::disallowed_methods, clippy::disallowed_macros, clippy::wildcard_enum_match_arm)]

pub mod annotation;
mod at_once;
mod blocker;
mod changes;
mod code;
mod configs;
mod context;
mod disabled;
mod draft;
mod estimate;
mod flow;
mod forecast;
mod ignored_changes;
mod index;
mod ledger;
mod leftovers;
mod lookup;
mod marks;
mod phase;
mod plan;
mod policy;
mod predicate;
mod quorum_check;
mod report;
mod request;
mod rules;
mod snapshot;
mod time;

use std::collections::BTreeSet;

use blocker::Blocker;
use context::Context;

pub use code::Code;
pub use configs::KnownConfigs;
pub use disabled::Disabled;
pub use flow::{awaited_starts, outside_windows, start_is_due, starts_in_ledger};
pub use forecast::{
    Basis, Forecast, ForecastNode, ForecastStep, ForecastStepKind, ForecastTime, forecast,
};
pub use ignored_changes::IgnoredChanges;
pub use ledger::{
    AllocationBefore, AllocationDebt, Compensation, Debts, Direction, Ending, ExclusionDebt,
    HistoryEntry, KeptStopped, LastRestart, Ledger, MAX_HANDLED, MAX_HISTORY, Member, MemberUpdate,
    NodeResult, Once, Outcome, RecordDebt, RemovedExclusion, Restart, StartDebt, Step, Tried,
};
pub use leftovers::has_leftovers;
pub use phase::{Phase, UnknownPhase};
pub use plan::{Action, Change, Event, Plan, Reason, Resume, Waiting};
pub use policy::{Drain, InvalidShare, OnConfigChange, Policy, Share};
pub use predicate::Predicate;
pub use quorum_check::{QuorumAfterStop, quorum_after_stop};
pub use report::{Condition, Counts, MAX_NODES, NodeReport, Report, THE_CONFIG, debts_due, report};
pub use request::{InvalidRequest, Request, Strategy, Target};
pub use snapshot::{
    Allocation, Cluster, Color, ContainerWaiting, DataPlace, Endpoint, Engine, Health,
    InvalidSnapshot, Known, LastExit, LastRequest, LivePod, Manager, Marker, Node, Pod, PodPatch,
    PodUpdate, Record, ResizeState, Run, RunningSnapshot, Saved, ShardCopies, ShardCopy, Snapshot,
    Sources, Unknown, Voting,
};
pub use snapshot::{are_master_eligible, exec_manager, holds_data, snapshot_schema};
pub use stayput_declare::Leaving;
pub use stayput_reuse::{Settings, UpdateStep};
pub use time::{InvalidTime, Time};

/// In which order a restart would take these pods; without an engine, roles and the elected master
/// are unknown, and what is broken goes first, then each set by its ordinals, the highest first.
pub fn order<'a>(pods: &'a [Pod], engine: Option<&Engine>) -> Vec<&'a Pod> {
    rules::order(pods.iter(), engine)
}

/// Decides what to do now. Never fails: unknown or invalid input is a reason to wait.
pub fn plan(snapshot: &Snapshot, policy: &Policy) -> Plan {
    let context = Context::new(snapshot, policy);
    flow::decide(&context).into_plan()
}

/// How many nodes are still to be restarted for a changed config or template, at once or when what
/// comes first is over. Nodes that leave are not among them, nor are templates that wait for a
/// person: the step is not allowed, or was given up. Unknown if it is not known of a pod whether its
/// template has changed.
pub fn changes_to_come(snapshot: &Snapshot, policy: &Policy) -> Known<u32> {
    let pods = || snapshot.pods.iter().filter(|pod| pod.leaving.is_none());
    let mut pending: BTreeSet<&str> =
        pods().filter(|pod| pod.drifts()).map(|pod| pod.uid.as_str()).collect();
    if !policy.update.is_empty() {
        if let Some(unknown) = pods().find_map(|pod| pod.update.as_ref().err()) {
            return Err(unknown.clone());
        }
        let context = Context::new(snapshot, policy);
        pending.extend(flow::updates_to_come(&context).map(|pod| pod.uid.as_str()));
    }
    Ok(u32::try_from(pending.len()).unwrap_or(u32::MAX))
}

/// For how long after a restart's end the engine is still observed, in milliseconds: a request of
/// ours that was slow may arrive late.
const LATE_REQUEST_WINDOW: u64 = 60_000;

/// Whether a restart ended a short while ago.
fn ended_recently(snapshot: &Snapshot) -> bool {
    snapshot.ledger.history.last().is_some_and(|entry| {
        let ended = entry.started.plus(entry.seconds * 1000);
        snapshot.now.since(ended) < LATE_REQUEST_WINDOW
    })
}

/// Whether a decision may depend on the engine's view, so that it must be read.
pub fn needs_engine(snapshot: &Snapshot) -> bool {
    let ledger = &snapshot.ledger;
    let phase = |pod: &Pod| pod.annotations.contains_key(annotation::PHASE);
    let is_kept_stopped = |pod: &Pod| pod.annotations.contains_key(annotation::STOPPED);
    let asked = snapshot.cluster.annotations.get(annotation::REQUEST).is_some_and(|text| {
        Request::parse(text).is_ok_and(|request| !ledger.has_handled(&request.id))
    });
    ended_recently(snapshot)
        || asked
        || ledger.restart.is_some()
        || ledger.queued.is_some()
        || !ledger.debts.is_empty()
        || !ledger.kept_stopped.is_empty()
        || ledger.removed_exclusions.iter().any(|removed| removed.may_come_again(snapshot.now))
        || !snapshot.cluster.stopped.is_empty()
        || snapshot.pods.iter().any(|pod| phase(pod) || is_kept_stopped(pod))
}

/// Whether the engine is to be read: also while a pod is not ready, because only the engine knows
/// whether its node is in the cluster, and while its version decides how a config can be changed.
pub fn reads_engine(snapshot: &Snapshot) -> bool {
    needs_engine(snapshot)
        || snapshot.pods.iter().any(|pod| !pod.ready)
        || at_once::needs_version(snapshot)
}

#[cfg(test)]
#[allow(clippy::wildcard_enum_match_arm, reason = "a test names the cases it looks for")]
mod tests;
