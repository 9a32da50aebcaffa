//! What the status shows beside the ledger: made for people, from the same look at everything that
//! the decision was made from. No decision reads it.

mod conditions;
mod debts;
mod rows;
mod word;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use debts::due as debts_due;

use super::estimate::Estimate;
use super::flow::drifts;
use super::{Ledger, Member, Plan, Pod, Policy, Snapshot, Step, Time, Waiting};
use stayput_api::State;

/// How many nodes are listed at most; `counts` covers the others.
pub const MAX_NODES: usize = 100;

/// What the status shows beside the ledger.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What is going on with the cluster as a whole: Idle, PendingRestart, Restarting, Aborting,
    /// Paused, Blocked, Degraded, Deleting or Invalid.
    #[serde(default)]
    pub phase: String,
    /// Strategy of the restart under way and how many of its nodes are done: `rolling 2/3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// The rule or fault that keeps it from going on, in one word for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
    /// What is waited for, and what to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How much longer the restart takes, by the pace of its nodes that are done: an estimate, in
    /// coarse steps, in no decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<String>,
    /// How many of what.
    #[serde(default)]
    pub counts: Counts,
    /// Nodes that are in a phase, blocked, stopped or run on another config than their sources
    /// have; 100 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeReport>,
    /// `Available`, `RestartInProgress`, `Blocked`, `Degraded` and `PredicatesDisabled`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// How many of what.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// Pods that the selector finds.
    pub pods: u32,
    /// Pods that are ready.
    pub ready: u32,
    /// Nodes that are being restarted or brought back.
    pub restarting: u32,
    /// Nodes that wait for their turn.
    pub scheduled: u32,
    /// Nodes that run on another config than their sources have.
    pub pending_restart: u32,
    /// Engines that are stopped.
    pub stopped: u32,
    /// Managers that cannot be asked.
    pub unreachable: u32,
}

/// One node that is worth a line.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    /// Name of the engine's node.
    pub name: String,
    /// Phase of its restart, as its pod shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// What its engine is, as its manager says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Checksum of the config it runs on; its first twelve digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// Version of its manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager_version: Option<String>,
    /// Why nothing is done for it, in one word for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<String>,
    /// The same in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A condition as Kubernetes has them everywhere.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word for programs.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// Since when the status is what it is.
    #[schemars(with = "String")]
    pub last_transition_time: Time,
}

/// Says what is going on. Every condition has just become what it is, as far as one look can tell;
/// [`Report::since`] puts that right.
pub fn report(snapshot: &Snapshot, policy: &Policy, plan: &Plan) -> Report {
    let counts = count(snapshot);
    let blocker = word::blocker(snapshot, plan);
    let estimate = estimate(snapshot, blocker);
    let message = word::message(snapshot, policy, plan, blocker, &counts);
    Report {
        phase: word::phase(snapshot, blocker, &counts).to_owned(),
        progress: progress(&snapshot.ledger),
        blocked: blocker.map(|waiting| waiting.code.as_str().to_owned()),
        message: with_estimate(message, estimate.as_deref().filter(|_| blocker.is_none())),
        estimate,
        counts,
        nodes: rows::rows(snapshot, plan),
        conditions: conditions::conditions(snapshot, policy, blocker, &counts),
    }
}

impl Report {
    /// For a spec with these faults, each of them a sentence: nothing can be decided, and what the
    /// ledger holds is shown.
    pub fn invalid(faults: &[String], ledger: &Ledger, now: Time) -> Self {
        let message = faults.join("; ");
        Self {
            phase: "Invalid".into(),
            progress: progress(ledger),
            blocked: Some(INVALID_SPEC.into()),
            message: Some(message.clone()),
            conditions: conditions::invalid(ledger, INVALID_SPEC, message, now),
            ..Self::default()
        }
    }

    /// Conditions whose status is what it was `before` have been so since then.
    #[must_use]
    pub fn since(mut self, before: &[Condition]) -> Self {
        for condition in &mut self.conditions {
            let same =
                |old: &&Condition| old.kind == condition.kind && old.status == condition.status;
            if let Some(old) = before.iter().find(same) {
                condition.last_transition_time = old.last_transition_time;
            }
        }
        self
    }
}

/// How much longer it takes. A rule that lets nodes pass by itself is part of the pace; nobody knows
/// how long it takes a person to put something right.
fn estimate(snapshot: &Snapshot, blocker: Option<&Waiting>) -> Option<String> {
    let restart = snapshot.ledger.restart.as_ref()?;
    let is_stuck = blocker.is_some_and(|waiting| !waiting.code.passes_by_itself());
    let estimate = Estimate::of(restart, snapshot.now).filter(|_| !is_stuck);
    estimate.map(|estimate| estimate.to_string())
}

/// What is waited for, with how much longer it takes.
fn with_estimate(message: Option<String>, estimate: Option<&str>) -> Option<String> {
    match (message, estimate) {
        (Some(message), Some(estimate)) => Some(format!("{message}; {estimate}")),
        (message, estimate) => message.or_else(|| estimate.map(str::to_owned)),
    }
}

/// What blocks a cluster whose spec cannot be used.
const INVALID_SPEC: &str = "invalid_spec";

/// `rolling 2/3`.
fn progress(ledger: &Ledger) -> Option<String> {
    let restart = ledger.restart.as_ref()?;
    let done = restart.members.iter().filter(|member| member.step == Step::Finished).count();
    Some(format!("{} {done}/{}", restart.request.strategy.as_str(), restart.members.len()))
}

fn count(snapshot: &Snapshot) -> Counts {
    let many = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let pods =
        |which: fn(&Pod) -> bool| many(snapshot.pods.iter().filter(|pod| which(pod)).count());
    let members = |which: fn(&Member) -> bool| {
        many(snapshot.ledger.members().filter(|member| which(member)).count())
    };
    Counts {
        pods: many(snapshot.pods.len()),
        ready: pods(|pod| pod.ready),
        restarting: members(Member::is_under_way),
        scheduled: members(|member| member.step == Step::Scheduled),
        pending_restart: pods(drifts),
        stopped: pods(|pod| {
            pod.manager.as_ref().is_ok_and(|manager| manager.state == State::Stopped)
        }),
        unreachable: pods(|pod| pod.manager.is_err()),
    }
}
