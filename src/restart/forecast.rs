//! The forecast of a whole restart (people call it a dry run): the nodes that go together, in their
//! order, if every step succeeds, and the reasons that block the others.
//!
//! The forecast has no rules of its own. Its present is the result of [`super::plan()`]. Its future is
//! the result of the same rules, on the assumption that each node comes back and that the cluster is
//! otherwise as in the snapshot ([`returned_nodes`]).

mod batches;
mod joint_step;
mod not_yet;
mod other_updates;
mod returned_nodes;
mod working_copy;

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::context::Context;
use super::flow::{decide, planned_update};
use super::lookup::Lookup;
use super::{
    Action, Code, HistoryEntry, Ledger, Member, MemberStep, Plan, Pod, Policy, Request, Restart,
    Snapshot, Strategy, UpdateStep, Waiting,
};
use batches::add_batches;
use joint_step::{add_coordinated_steps, add_joint_step};
use other_updates::other_updates;
use working_copy::WorkingCopy;

/// The rest of a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// The request of the restart.
    pub request: Request,
    /// Where the request comes from.
    pub basis: Basis,
    /// The reason that blocks the restart as a whole now. The steps are those that follow once it
    /// is gone.
    pub blocked_by: Option<Waiting>,
    /// True if the reconciler would refuse the request; [`Self::blocked_by`] has the reason.
    pub is_refused: bool,
    /// Steps in their order.
    pub steps: Vec<ForecastStep>,
    /// The nodes that wait now, and why.
    pub waiting: Vec<Waiting>,
    /// The nodes that are blocked by a reason that passes by itself, such as a node that is starting or
    /// a copy that is being built, and the first rule that blocks each of them.
    pub not_yet: Vec<Waiting>,
    /// The nodes that are not restarted unless somebody changes something, and the first rule that
    /// blocks each of them.
    pub never: Vec<Waiting>,
    /// The nodes whose pods lack something of their templates that none of the steps carries out.
    pub other_updates: Vec<ForecastNode>,
}

/// Where the request of a forecast comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The restart of the request is under way.
    UnderWay,
    /// A person or the spec has requested it, and it is about to begin.
    Requested,
    /// No one requested it: an assumption.
    Hypothetical,
}

/// Nodes that go together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForecastStep {
    pub kind: ForecastStepKind,
    pub when: ForecastTime,
    /// Nodes in their order.
    pub nodes: Vec<ForecastNode>,
}

/// The work on the nodes of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForecastStepKind {
    /// Each is stopped and started.
    Restart,
    /// All are stopped.
    Stop,
    /// All are started.
    Start,
}

/// Time of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForecastTime {
    /// The step has begun.
    UnderWay,
    /// The step begins at once.
    Now,
    /// After the steps before it, and once nothing blocks the restart.
    Later,
}

/// One node in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForecastNode {
    pub name: String,
    /// Why the node is in this step, for people.
    pub message: String,
    /// The step that restarts or updates the node.
    pub step: UpdateStep,
    /// The fields of the node's pod template that need this step, with their values; the first few.
    pub because: Vec<String>,
}

impl ForecastNode {
    /// A node whose process is restarted; [`carry_out_updates`] knows better.
    fn new(name: &str, message: String) -> Self {
        Self { name: name.to_owned(), message, step: UpdateStep::Restart, because: Vec::new() }
    }
}

/// Forecasts the restart that is under way or about to begin. Without one, it forecasts `request`, or
/// without a request a rolling restart of every node. With a request while another restart is under way,
/// it forecasts what follows that one.
pub fn forecast(snapshot: &Snapshot, policy: &Policy, request: Option<&Request>) -> Forecast {
    let mut working_copy = WorkingCopy::of(snapshot, policy, request);
    let Plan { actions, waiting, .. } = plan_without_patches(&working_copy.snapshot, policy);
    let after = ledger_after(&actions, &working_copy.snapshot.ledger).clone();
    let blocked_now = cluster_blocker(&waiting);
    let Some(restart) = after.restart.clone() else {
        return without_restart(&working_copy, policy, &after, blocked_now, waiting);
    };
    let under_way = uids(&working_copy.snapshot.ledger, Member::is_under_way);
    let mut chosen = uids(&after, Member::is_under_way);
    chosen.retain(|uid| !under_way.contains(uid));
    let queued_behind = working_copy.queued_behind.take();
    let waiting = not_chosen(waiting, &restart, &chosen, queued_behind.as_ref());
    let blocked_by = queued_behind.or(blocked_now);
    // Between two nodes the next one has no slot while the cluster recovers.
    let waits_for_the_last = chosen.is_empty()
        && working_copy.snapshot.ledger.members().any(|one| one.step == MemberStep::Finished);
    let is_now = blocked_by.is_none() && under_way.is_empty() && !waits_for_the_last;
    let as_a_whole = restart.request.goes_as_a_whole();
    let mut steps = Vec::new();
    let is_coordinated = restart.request.strategy == Strategy::Coordinated;
    if is_coordinated && !under_way.is_empty() {
        add_coordinated_steps(&restart, ForecastTime::UnderWay, &mut steps);
    } else if !under_way.is_empty() {
        let message = "it is under way";
        let members = &restart.members;
        let kind = ForecastStepKind::Restart;
        steps.push(step_of(kind, ForecastTime::UnderWay, members, &under_way, message));
    }
    working_copy.advance_past(after, &under_way, &chosen);
    let is_joint = as_a_whole || is_coordinated;
    let add_rest = if is_joint { add_joint_step } else { add_batches };
    let blocked = add_rest(&mut working_copy, policy, is_now, &mut steps);
    carry_out_updates(&mut steps, snapshot, policy, &restart);
    let is_under_way = !under_way.is_empty();
    let (not_yet, never) = not_yet::split(&mut working_copy, is_under_way, blocked, |settled| {
        add_rest(settled, policy, false, &mut Vec::new())
    });
    let request = restart.request;
    let other_updates = other_updates(snapshot, policy, request.strategy, &steps);
    let basis = working_copy.basis;
    let is_refused = false;
    Forecast {
        request,
        basis,
        blocked_by,
        is_refused,
        steps,
        waiting,
        not_yet,
        never,
        other_updates,
    }
}

/// The plan for now. Patches that show phases on pods are left out: they would take the place of the
/// reasons why the nodes wait.
fn plan_without_patches(snapshot: &Snapshot, policy: &Policy) -> Plan {
    decide(&Context::new(snapshot, policy)).without_patches().into_plan()
}

/// The forecast of a request that leads to no restart.
fn without_restart(
    working_copy: &WorkingCopy,
    policy: &Policy,
    after: &Ledger,
    blocked_by: Option<Waiting>,
    waiting: Vec<Waiting>,
) -> Forecast {
    let request = after.queued.clone().unwrap_or_else(|| working_copy.request());
    let blocked_by = if working_copy.snapshot.cluster.deleting {
        let message = "the SearchCluster is being deleted: no restart begins";
        Some(of_cluster(Code::Idle, message))
    } else {
        blocked_by
    };
    let new = after.history.last().filter(|last| last.id == request.id && blocked_by.is_none());
    let is_refused = new.is_some();
    let refusal = |new: &HistoryEntry| {
        of_cluster(Code::InvalidInput, format!("the request is refused: {}", new.reason))
    };
    let blocked_by = blocked_by.or_else(|| new.map(refusal));
    let waiting = waiting.into_iter().filter(|one| one.pod.is_some()).collect();
    let basis = working_copy.basis;
    let other_updates = other_updates(&working_copy.snapshot, policy, request.strategy, &[]);
    let (steps, not_yet, never) = (Vec::new(), Vec::new(), Vec::new());
    Forecast {
        request,
        basis,
        blocked_by,
        is_refused,
        steps,
        waiting,
        not_yet,
        never,
        other_updates,
    }
}

/// Why the nodes that are not chosen wait. `queued_behind` is the restart that the whole request
/// waits for.
fn not_chosen(
    all_waiting: Vec<Waiting>,
    restart: &Restart,
    chosen: &BTreeSet<String>,
    queued_behind: Option<&Waiting>,
) -> Vec<Waiting> {
    let members = restart.members.iter();
    let steps: Lookup<'_, MemberStep> =
        members.map(|member| (member.pod_uid.as_str(), member.step)).collect();
    let mut waiting = Vec::with_capacity(all_waiting.len());
    for mut one in all_waiting {
        let Some(uid) = &one.pod else { continue };
        let step = steps.get(uid.as_str());
        if let (Some(other), Some(_)) = (queued_behind, step) {
            (one.code, one.message) = (other.code, other.message.clone());
        } else if chosen.contains(uid) {
            continue;
        } else if one.code == Code::Recording {
            // A plan that writes the ledger gives no reason for the other nodes.
            let (code, message) = match step {
                Some(MemberStep::Finished) => (Code::Finished, "done"),
                Some(_) => (Code::NotItsTurn, "its turn comes later"),
                None => (Code::Idle, "no restart was requested for it"),
            };
            (one.code, one.message) = (code, message.into());
        }
        waiting.push(one);
    }
    waiting
}

fn step_of(
    kind: ForecastStepKind,
    when: ForecastTime,
    members: &[Member],
    which: &BTreeSet<String>,
    message: &str,
) -> ForecastStep {
    let members = members.iter().filter(|member| which.contains(&member.pod_uid));
    let nodes = members.map(|member| ForecastNode::new(&member.node, message.into()));
    ForecastStep { kind, when, nodes: nodes.collect() }
}

/// Adds to each node the changes of its pod that are carried out with the restart.
fn carry_out_updates(
    steps: &mut [ForecastStep],
    snapshot: &Snapshot,
    policy: &Policy,
    restart: &Restart,
) {
    let pods: Lookup<'_, &Pod> = snapshot.pods.iter().map(|pod| (pod.node.as_str(), pod)).collect();
    let under_way = snapshot.ledger.under_way();
    let under_way: Lookup<'_, &Member> =
        under_way.map(|member| (member.node.as_str(), member)).collect();
    for node in steps.iter_mut().flat_map(|step| &mut step.nodes) {
        let update = match under_way.get(node.name.as_str()) {
            Some(member) => member.update.as_ref().map(|fixed| &fixed.update),
            None => {
                let pod = pods.get(node.name.as_str());
                pod.and_then(|pod| planned_update(policy, restart.request.strategy, pod))
            }
        };
        if let Some(update) = update {
            node.step = update.step;
            node.because.clone_from(&update.because);
        }
    }
}

/// The ledger after a plan.
fn ledger_after<'a>(actions: &'a [Action], before: &'a Ledger) -> &'a Ledger {
    match actions.first() {
        Some(Action::WriteLedger(ledger)) => ledger,
        Some(_) | None => before,
    }
}

/// Uids of the members' pods.
fn uids(ledger: &Ledger, which: impl Fn(&Member) -> bool) -> BTreeSet<String> {
    ledger.members().filter(|member| which(member)).map(|member| member.pod_uid.clone()).collect()
}

/// The reason that blocks the cluster as a whole; a step that only takes time does not.
fn cluster_blocker(waiting: &[Waiting]) -> Option<Waiting> {
    let all = waiting.iter().find(|one| one.pod.is_none());
    all.filter(|one| one.code.blocks() || one.code.waits_for_its_time()).cloned()
}

fn of_cluster(code: Code, message: impl Into<Cow<'static, str>>) -> Waiting {
    Waiting { pod: None, node: None, code, message: message.into() }
}
