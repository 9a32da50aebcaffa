//! Decisions about restarting a whole cluster: data in, data out.
//!
//! [`plan()`] looks at one [`Snapshot`] and says what to do now and why everybody else waits. It has
//! no memory but the [`Ledger`], no clock but [`Snapshot::now`], and may be called again at any
//! moment, by anybody, on what is stale or partial: what it allows is fenced by the ledger's
//! compare-and-set and by the sequences in it.

#![deny(clippy::disallowed_methods, clippy::disallowed_macros, clippy::wildcard_enum_match_arm)]

pub mod annotation;
mod code;
mod ledger;
mod phase;
mod plan;
mod policy;
mod request;
mod snapshot;
mod time;

pub use code::Code;
pub use ledger::{
    AllocationBefore, AllocationDebt, Compensation, Debts, Direction, Ending, Entry, Fence,
    LastRestart, Ledger, MAX_HANDLED, MAX_HISTORY, Member, Once, Outcome, RecordDebt, Restart,
    StartDebt, Step,
};
pub use phase::{Phase, UnknownPhase};
pub use plan::{Action, Change, Event, Plan, Reason, Waiting};
pub use policy::{OnConfigChange, Policy};
pub use request::{Request, Strategy, Target};
pub use snapshot::{
    Allocation, Cluster, Color, Engine, Health, Known, LastExit, LastRequest, Manager, Marker,
    Node, Pod, Record, Run, ShardCopy, Snapshot, Sources, Unknown, Voting,
};
pub use time::Time;

/// Decides what to do now. Never fails: what cannot be known or understood is a reason to wait.
pub fn plan(snapshot: &Snapshot, policy: &Policy) -> Plan {
    let _ = (snapshot, policy);
    Plan::default()
}
