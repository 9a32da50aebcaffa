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
mod disabled;
mod draft;
mod engine_needed;
mod estimate;
mod event;
mod flow;
mod forecast;
mod ignored_changes;
mod index;
mod late_requests;
mod ledger;
mod manager_request;
mod needs_coordinated;
mod phase;
mod plan;
mod policy;
mod predicate;
mod quorum_check;
mod report;
mod request;
mod rules;
mod shell;
mod snapshot;
mod time;

use changes::Blocker;
use context::Context;
use late_requests::{LATE_REQUEST_WINDOW, ended_recently, last_end};

pub use code::Code;
pub use configs::KnownConfigs;
pub use disabled::Disabled;
pub use engine_needed::{needs_engine, reads_engine};
pub use event::{Event, Reason};
pub use flow::{awaited_starts, changes_to_come, outside_windows, start_is_due, starts_in_ledger};
pub use forecast::{
    Basis, Forecast, ForecastNode, ForecastStep, ForecastStepKind, ForecastTime, forecast,
};
pub use ignored_changes::IgnoredChanges;
pub use late_requests::has_leftovers;
pub use ledger::{
    AllocationBefore, AllocationDebt, Compensation, Debts, Direction, Ending, ExclusionDebt,
    HistoryEntry, KeptStopped, LastRestart, Ledger, MAX_HANDLED, MAX_HISTORY, MAX_MEMBERS, Member,
    MemberStep, MemberUpdate, NodeResult, Once, Outcome, RecordDebt, RemovedExclusion, Restart,
    StartDebt, Stays, Tried,
};
pub use manager_request::{drain_request, start_request, stop_request};
pub use phase::{Phase, UnknownPhase};
pub use plan::{Action, Plan, Resume, Waiting};
pub use policy::{Drain, InvalidShare, OnConfigChange, Policy, Share};
pub use predicate::Predicate;
#[doc(hidden)]
pub use quorum_check::{QuorumAfterStop, quorum_after_stop};
pub use report::{
    Condition, Counts, MAX_NODES, NodeReport, Report, RestartReport, THE_CONFIG, debts_due, report,
};
pub use request::{InvalidRequest, Request, Strategy, Target};
pub use shell::{foreign_text, shell_word};
pub use snapshot::{
    Allocation, Cluster, Color, ContainerWaiting, DataPlace, Endpoint, Engine, Health,
    InvalidSnapshot, Known, LastExit, LastRequest, LivePod, Manager, Marker, MissingPod, Node,
    NotStarted, Operator, OperatorKind, OtherContainer, Pod, Record, ResizeState, Run,
    RunningSnapshot, Saved, ShardCopies, ShardCopy, Snapshot, Sources, Unknown, Unreturnable,
    Voting,
};
pub use snapshot::{are_master_eligible, exec_manager, holds_data, snapshot_schema};
pub use stayput_declare::Leaving;
pub use stayput_pod_update::{Change, GivenSettings, PodPatch, PodUpdate, Settings, UpdateStep};
pub use time::{InvalidTime, Time};

/// The order in which a restart would take these pods. Without an engine, roles and the elected master
/// are unknown: broken nodes go first, then each set by its ordinals, the highest first.
pub fn order<'a>(pods: &'a [Pod], engine: Option<&Engine>) -> Vec<&'a Pod> {
    rules::order(pods.iter(), engine)
}

/// The part of a pod's images and sizes to roll back next, if there is one, so that a dry run can ask
/// the apiserver if it accepts that.
pub fn to_be_set_back(ledger: &Ledger, pod: &Pod) -> Option<PodPatch> {
    flow::set_back_next(ledger, pod)
}

/// Decides what to do now. Never fails: unknown or invalid input is a reason to wait.
pub fn plan(snapshot: &Snapshot, policy: &Policy) -> Plan {
    let context = Context::new(snapshot, policy);
    flow::decide(&context).into_plan()
}

#[cfg(test)]
#[allow(clippy::wildcard_enum_match_arm, reason = "a test names the cases it looks for")]
mod tests;
