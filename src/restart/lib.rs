//! Decisions about restarting a whole cluster: data in, data out.
//!
//! [`plan()`] reads one [`Snapshot`] and decides what to do now, and why the other nodes wait. It
//! has no memory but the [`Ledger`] and no clock but [`Snapshot::now`]. Any process may call it at
//! any time, also on a stale or partial snapshot: the compare-and-set of the ledger and the
//! sequences in it protect against wrong actions.

#![deny(clippy::disallowed_methods, clippy::disallowed_macros, clippy::wildcard_enum_match_arm)]

pub mod annotation;
mod changes;
mod code;
mod configs;
mod context;
mod flow;
mod forecast;
mod index;
mod late_requests;
mod ledger;
mod needs_coordinated;
mod plan;
mod policy;
mod report;
mod request;
mod rules;
mod shell;
mod snapshot;
mod time;

use std::collections::BTreeSet;

use changes::Blocker;
use context::Context;
use late_requests::{LATE_REQUEST_WINDOW, ended_recently, last_end};
use rules::MasterVoters;

pub use code::{Code, Predicate};
pub use configs::{IgnoredChanges, KnownConfigs};
pub use flow::{
    LeavePlan, awaited_starts, changes_to_come, leave_plan, start_is_due, starts_in_ledger,
};
pub use forecast::{
    Basis, Forecast, ForecastNode, ForecastStep, ForecastStepKind, ForecastTime, forecast,
};
pub use late_requests::has_leftovers;
pub use ledger::{
    AllocationBefore, AllocationDebt, Compensation, Debts, Direction, Ending, ExcludedBefore,
    ExclusionDebt, HistoryEntry, KeptStopped, LastRestart, Leaving, Ledger, MAX_HANDLED,
    MAX_HISTORY, MAX_MEMBERS, Member, MemberStep, MemberUpdate, NodeResult, Once, Outcome,
    RecordDebt, RemovedExclusion, Restart, StartDebt, Stays, Tried, debts_due,
};
pub use plan::{
    Action, Event, Plan, REVISION_LABEL, Reason, Resume, Waiting, drain_request, start_request,
    stop_request,
};
pub use policy::{Disabled, Drain, InvalidShare, OnConfigChange, Policy, Share};
pub use report::{
    Condition, Counts, MAX_NODES, NodeReport, Report, RestartReport, THE_CONFIG, report,
};
pub use request::{InvalidRequest, Phase, Request, Strategy, Target, UnknownPhase};
pub use rules::place_without_engine;
pub use shell::{foreign_text, shell_word};
pub use snapshot::{
    Allocation, Cluster, Color, ContainerWaiting, DataPlace, Endpoint, Engine, Health,
    InvalidSnapshot, Known, LabelAhead, LastExit, LastRequest, LeavingShards, LivePod, Manager,
    Marker, MissingPod, Node, NodeSet, NodeSets, NotStarted, Operator, OperatorFacts, OperatorKind,
    OperatorObject, OperatorState, OtherContainer, Pod, Record, ResizeState, Run, RunningSnapshot,
    Saved, ShardCopies, ShardCopy, Snapshot, Sources, Unknown, Unreturnable, Voting,
};
pub use snapshot::{
    are_master_eligible, exec_manager, holds_data, set_eck_budget, snapshot_schema,
};
pub use stayput_pod_update::{Change, GivenSettings, PodPatch, PodUpdate, Settings, UpdateStep};
pub use time::{InvalidTime, Time};

/// The part of a pod's images and sizes to roll back next, if there is one, so that a dry run can ask
/// the apiserver if it accepts that.
pub fn to_be_set_back(ledger: &Ledger, pod: &Pod) -> Option<PodPatch> {
    flow::set_back_next(ledger, pod)
}

/// Decides what to do now. Never fails: unknown or invalid input is a reason to wait.
pub fn plan(snapshot: &Snapshot, policy: &Policy) -> Plan {
    let policy = policy.of(&snapshot.cluster);
    let context = Context::new(snapshot, &policy);
    flow::decide(&context).into_plan()
}

/// True if a decision may depend on the engine's view, so that it must be read.
pub fn needs_engine(snapshot: &Snapshot) -> bool {
    let ledger = &snapshot.ledger;
    let phase = |pod: &Pod| pod.annotations.contains_key(annotation::PHASE);
    let is_kept_stopped = |pod: &Pod| pod.annotations.contains_key(annotation::STOPPED);
    let asked = snapshot.cluster.annotations.get(annotation::REQUEST).is_some_and(|text| {
        Request::parse(text).is_ok_and(|request| !ledger.has_handled(&request.id))
    });
    ended_recently(snapshot)
        || asked
        || snapshot.node_sets.is_some()
        || ledger.restart.is_some()
        || ledger.queued.is_some()
        || !ledger.debts.is_empty()
        || !ledger.kept_stopped.is_empty()
        || ledger.removed_exclusions.iter().any(|removed| removed.may_come_again(snapshot.now))
        || !snapshot.cluster.stopped.is_empty()
        || snapshot.pods.iter().any(|pod| phase(pod) || is_kept_stopped(pod))
}

/// True if the engine is to be read: for a decision; while a pod is not ready or missing, because only
/// the engine knows if the node is in the cluster and what its absence costs; and while the engine's
/// version decides how a config can be changed.
pub fn reads_engine(snapshot: &Snapshot) -> bool {
    needs_engine(snapshot)
        || !snapshot.missing.is_empty()
        || snapshot.pods.iter().any(|pod| !pod.ready)
        || needs_coordinated::needs_version(snapshot)
}

/// Effect of the stop of one node on the quorum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuorumAfterStop {
    /// Enough votes are left.
    Kept,
    /// The node has the only vote. Enough are left once this node votes in its place.
    KeptByHandover(String),
    /// No master could be elected, or the effect is not known: code and message of the rule.
    Lost(Code, String),
}

/// Effect of the stop of `node` on the quorum while the nodes `down` are stopped or being stopped. All
/// are names of nodes. `cluster` is the SearchCluster, as `namespace/name`, for the message.
pub fn quorum_after_stop(
    cluster: &str,
    engine: &Engine,
    node: &str,
    down: &BTreeSet<String>,
) -> QuorumAfterStop {
    let down = down.iter().cloned().collect();
    match MasterVoters::of(engine, cluster).after_stop(node, &down, None) {
        rules::QuorumAfterStop::Kept => QuorumAfterStop::Kept,
        rules::QuorumAfterStop::KeptByHandover(to) => QuorumAfterStop::KeptByHandover(to),
        rules::QuorumAfterStop::Lost(blocker) => {
            QuorumAfterStop::Lost(blocker.code, blocker.message)
        }
    }
}

#[cfg(test)]
#[allow(clippy::wildcard_enum_match_arm, reason = "a test names the cases it looks for")]
mod tests;
