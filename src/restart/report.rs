//! The part of the status beside the ledger: made for people, from the snapshot that the plan was made
//! from. No decision reads it.

#![warn(missing_docs)]

mod conditions;
mod nodes;
mod summary;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use nodes::THE_CONFIG;
pub(crate) use summary::Estimate;

use self::nodes::DownNodes;
use super::{
    Direction, Ledger, Member, MemberStep, Plan, Pod, Policy, Restart, Snapshot, Sources, Strategy,
    Time, Waiting,
};
use stayput_api::State;
use stayput_pod_update::UpdateStep;

/// Maximum number of nodes in the list; `counts` includes the others.
pub const MAX_NODES: usize = 100;

/// The part of the status beside the ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// State of the cluster as a whole: Idle, PendingRestart, Restarting, Aborting,
    /// Paused, Blocked, Degraded, Deleting or Invalid.
    #[serde(default)]
    pub phase: String,
    /// Strategy of the restart under way and how many of its nodes are done: `rolling 2/3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// The restart under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartReport>,
    /// Code of the rule or fault that blocks the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
    /// The reason why the cluster waits, and the remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How much longer the restart takes: an estimate in coarse steps, by the time that the nodes
    /// took so far. No decision uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<String>,
    /// Numbers of pods and nodes.
    #[serde(default)]
    pub counts: Counts,
    /// The object that a node's config is made from and that is absent or cannot be read, and what to
    /// do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_absent: Option<String>,
    /// Nodes that are in a phase, down, blocked or stopped, or that run on another config than their
    /// sources have; 100 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeReport>,
    /// `Ready`, `Reconciling` and `Stalled`, as `kubectl wait` and GitOps tools read them;
    /// `Available`, `RestartInProgress`, `Blocked`, `Degraded` and `PredicatesDisabled`;
    /// `CertificatesValid`, of the managers, once these were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The restart under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestartReport {
    /// Id of the request.
    pub id: String,
    /// How the nodes are restarted.
    pub strategy: Strategy,
    /// Where a coordinated restart goes; a rolling one is always open.
    pub direction: Direction,
}

impl RestartReport {
    fn of(ledger: &Ledger) -> Option<Self> {
        let Restart { request, direction, .. } = ledger.restart.as_ref()?;
        let (id, strategy) = (request.id.clone(), request.strategy);
        Some(Self { id, strategy, direction: *direction })
    }
}

/// Numbers of pods and nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// Pods that the selector matches.
    pub pods: u32,
    /// Pods that are ready.
    pub ready: u32,
    /// Nodes that are being restarted or brought back.
    pub restarting: u32,
    /// Nodes whose restart has not begun yet.
    pub scheduled: u32,
    /// Nodes that run on another config than their sources have.
    pub pending_restart: u32,
    /// Pods whose owner wants another template than they are made from, read only if templates are
    /// carried out (`spec.update`).
    pub pending_update: u32,
    /// Engines that are stopped.
    pub stopped: u32,
    /// Managers that do not answer.
    pub unreachable: u32,
    /// Nodes that are down and not to be kept stopped: the engine has failed, was stopped (also by a
    /// person's request to its manager), or is not in the cluster; or its manager gives no answer and
    /// nothing shows that it serves; or its StatefulSet wants its pod and does not make it. One that is
    /// being restarted counts only once a restart that can only go forward has tried to start it for as
    /// long as a phase may take; one whose pod is being deleted does not count.
    pub down: u32,
}

/// A node that is not simply idle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    /// Name of the engine's node.
    pub name: String,
    /// Phase of its restart, as its pod shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// State of its engine, as its manager reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The first twelve digits of the checksum of the config it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// Version of its manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager_version: Option<String>,
    /// Code of why it is down, of each node that `counts.down` counts: `failed`, `backoff`, `stopped`,
    /// `stuck`, `not_in_cluster`, `crash_looping`, `pod_missing`, `pod_not_started`,
    /// `operator_replaces`, `manager_unreachable` or `wrong_pod`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<String>,
    /// How its restart, or the one that it needs, is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<UpdateStep>,
    /// The causes of this step: the fields of its pod template, with their values, the first few; before
    /// them `the config` if that has changed as well and needs more than they do. For a node that
    /// leaves: `spec.nodeSets`. Empty if only its config has changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<String>,
    /// Code of what blocks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<String>,
    /// Code of what it waits for, if that blocks nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// Why it is down, what to do, and what it waits for, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A condition as Kubernetes defines it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Name of the condition.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, for programs.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// The generation of the spec that it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the status last changed.
    pub last_transition_time: Time,
}

/// Makes the report. One snapshot cannot tell when a condition changed, so every condition changes
/// now; [`Report::since`] corrects that.
pub fn report(snapshot: &Snapshot, policy: &Policy, plan: &Plan) -> Report {
    let policy = &*policy.of(&snapshot.cluster);
    let down = nodes::down(snapshot, policy);
    let counts = count(snapshot, &down);
    let blocker = summary::blocker(snapshot, policy, plan);
    let estimate = estimate(snapshot, blocker);
    let message = summary::message(snapshot, policy, plan, blocker, &counts, &down);
    let message = summary::of_deletion(snapshot, message);
    Report {
        phase: summary::phase(snapshot, blocker, &counts).to_owned(),
        progress: progress(&snapshot.ledger),
        restart: RestartReport::of(&snapshot.ledger),
        blocked: blocker.map(|waiting| waiting.code.as_str().to_owned()),
        message: with_estimate(message, estimate.as_deref().filter(|_| blocker.is_none())),
        estimate,
        counts,
        source_absent: source_absent(snapshot),
        nodes: nodes::listed(snapshot, plan, &down),
        conditions: conditions::conditions(snapshot, policy, blocker, &counts, &down),
    }
}

/// The first absent source, with the number of other nodes that lack one.
fn source_absent(snapshot: &Snapshot) -> Option<String> {
    let message = |pod: &'_ Pod| match &pod.sources {
        Sources::Absent(message) => Some(message.clone()),
        Sources::Unknown(_) | Sources::Checksum(_) => None,
    };
    let mut absent: Vec<String> = snapshot.pods.iter().filter_map(message).collect();
    absent.sort();
    let count = absent.len();
    absent.dedup();
    let others = absent.len().saturating_sub(1);
    let first = absent.into_iter().next()?;
    Some(match others {
        0 if count == 1 => first,
        0 => format!("{first} (for {count} nodes)"),
        others => format!("{first} (and {others} more)"),
    })
}

impl Report {
    /// The report of a spec that is not used, for this reason: nothing is decided, and only the ledger
    /// is shown.
    pub fn refused(code: &str, message: String, ledger: &Ledger, now: Time) -> Self {
        Self {
            phase: "Invalid".into(),
            progress: progress(ledger),
            restart: RestartReport::of(ledger),
            blocked: Some(code.to_owned()),
            message: Some(message.clone()),
            conditions: conditions::refused(ledger, code, message, now),
            ..Self::default()
        }
    }

    /// Keeps the time of conditions whose status is the same as `before`. Each is of this generation
    /// of the spec.
    #[must_use]
    pub fn since(mut self, before: &[Condition], generation: Option<i64>) -> Self {
        for condition in &mut self.conditions {
            condition.observed_generation = generation;
            let same =
                |old: &&Condition| old.kind == condition.kind && old.status == condition.status;
            if let Some(old) = before.iter().find(same) {
                condition.last_transition_time = old.last_transition_time;
            }
        }
        self
    }
}

/// Remaining time of the restart. `None` while a person must correct something, because that time
/// is unknown.
fn estimate(snapshot: &Snapshot, blocker: Option<&Waiting>) -> Option<String> {
    let restart = snapshot.ledger.restart.as_ref()?;
    let is_stuck = blocker.is_some_and(|waiting| !waiting.code.passes_by_itself());
    let estimate = Estimate::of(restart, snapshot.now).filter(|_| !is_stuck);
    estimate.map(|estimate| estimate.to_string())
}

/// The message with the estimate at its end.
fn with_estimate(message: Option<String>, estimate: Option<&str>) -> Option<String> {
    match (message, estimate) {
        (Some(message), Some(estimate)) => Some(format!("{message}; {estimate}")),
        (message, estimate) => message.or_else(|| estimate.map(str::to_owned)),
    }
}

/// Progress of the restart, such as `rolling 2/3`.
fn progress(ledger: &Ledger) -> Option<String> {
    let restart = ledger.restart.as_ref()?;
    let done = restart.nodes_finished();
    Some(format!("{} {done}/{}", restart.request.strategy.as_str(), restart.members.len()))
}

fn count(snapshot: &Snapshot, down: &DownNodes<'_>) -> Counts {
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
        scheduled: members(|member| member.step == MemberStep::Scheduled),
        pending_restart: pods(Pod::drifts),
        pending_update: pods(|pod| summary::pending_update(pod).is_some()),
        stopped: pods(|pod| {
            pod.manager.as_ref().is_ok_and(|manager| manager.state == State::Stopped)
        }),
        unreachable: pods(|pod| pod.manager.is_err()),
        down: many(down.len()),
    }
}
