//! The forecast of a whole restart (people call it a dry run): the nodes that go together, in their
//! order, if every step succeeds, and the reasons that block the others.
//!
//! The forecast has no rules of its own: it calls [`super::plan()`] again and again, on a copy of the
//! snapshot in which each plan has succeeded at once ([`ideal_cluster`]).

mod ideal_cluster;

use std::borrow::Cow;
use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::annotation::{CANCEL, PHASE, REQUEST};
use super::flow::planned_update;
use super::index::Lookup;
use super::{
    Action, Code, HistoryEntry, Ledger, Member, MemberStep, Plan, Pod, PodUpdate, Policy, Request,
    Restart, Snapshot, Strategy, UpdateStep, Waiting,
};
use ideal_cluster::{IdealCluster, add_coordinated_steps};

/// Id of an assumed request.
const HYPOTHETICAL_ID: &str = "hypothetical";

/// The rest of a restart, as `kubectl stayput --output json` prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// Where the request comes from.
    pub basis: Basis,
    pub request: Request,
    /// The rule or fault that blocks the restart as a whole; the steps are those that follow once it
    /// is resolved.
    #[serde(rename = "blocker")]
    pub blocked_by: Option<Waiting>,
    /// True if the reconciler would refuse the request; [`Self::blocked_by`] has the reason.
    #[serde(skip)]
    pub is_refused: bool,
    /// In their order.
    pub steps: Vec<ForecastStep>,
    /// Nodes for which nothing begins now, with what they wait for.
    pub waiting: Vec<Waiting>,
    /// Nodes blocked by what passes by itself, with the first rule that blocks each.
    pub not_yet: Vec<Waiting>,
    /// Nodes that are not restarted unless somebody changes something, with the first rule that blocks
    /// each.
    pub never: Vec<Waiting>,
    /// Nodes whose pods lack something of their templates that none of the steps carries out.
    pub other_updates: Vec<ForecastNode>,
}

/// Where the request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "BasisOutput")]
pub enum Basis {
    /// The restart of the request is under way.
    UnderWay,
    /// The restart of the request is about to begin.
    Requested,
    /// No restart was requested: the dry run shows what it would do.
    Hypothetical,
}

/// Nodes that are restarted, stopped or started together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "StepOutput")]
pub struct ForecastStep {
    pub kind: ForecastStepKind,
    pub when: ForecastTime,
    pub nodes: Vec<ForecastNode>,
}

impl ForecastStep {
    /// The step of those members whose pods have these uids.
    fn of(
        kind: ForecastStepKind,
        when: ForecastTime,
        members: &[Member],
        which: &BTreeSet<String>,
        message: &str,
    ) -> Self {
        let members = members.iter().filter(|member| which.contains(&member.pod_uid));
        let nodes = members.map(|member| ForecastNode::new(&member.node, message.into()));
        Self { kind, when, nodes: nodes.collect() }
    }
}

/// The work on the nodes of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "StepKindOutput")]
pub enum ForecastStepKind {
    /// Each is stopped and started.
    Restart,
    /// All are stopped.
    Stop,
    /// All are started.
    Start,
}

/// When it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WhenOutput")]
pub enum ForecastTime {
    /// The step has begun.
    UnderWay,
    /// At once.
    Now,
    /// After the steps before it, and when nothing blocks the restart.
    Later,
}

/// One node of a step, or one that is in none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "StepNodeOutput")]
pub struct ForecastNode {
    pub name: String,
    /// Why it is in this step, or what becomes of its update, for people.
    pub message: String,
    /// How it is brought to what is wanted: `relabel`, `restart`, `container`, `resize` or `replace`.
    #[schemars(with = "String")]
    pub step: UpdateStep,
    /// The fields of its pod template that need this step, with their values; the first few.
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
    let policy = &*policy.of(&snapshot.cluster);
    let mut cluster = IdealCluster::new(snapshot, policy);
    let (basis, queued_behind) = assume(&mut cluster, request);
    let Plan { actions, waiting, .. } = cluster.plan();
    let before = &cluster.snapshot.ledger;
    let after = ledger_after(&actions, before).clone();
    let blocked_now = cluster_blocker(&waiting);
    let Some(restart) = after.restart.clone() else {
        return without_restart(&cluster.snapshot, policy, basis, &after, blocked_now, waiting);
    };
    let under_way = uids(before, Member::is_under_way);
    let chosen = begun(before, &after);
    let waiting = not_chosen(waiting, &restart, &chosen, queued_behind.as_ref());
    let blocked_by = queued_behind.or(blocked_now);
    // Between two nodes the next one has no slot while the cluster recovers.
    let waits_for_the_last =
        chosen.is_empty() && before.members().any(|one| one.step == MemberStep::Finished);
    let is_now = blocked_by.is_none() && under_way.is_empty() && !waits_for_the_last;
    let mut when = if is_now { ForecastTime::Now } else { ForecastTime::Later };
    let mut steps = Vec::new();
    let is_coordinated = restart.is_coordinated();
    if is_coordinated && !under_way.is_empty() {
        add_coordinated_steps(&restart, ForecastTime::UnderWay, &mut steps);
    } else if !under_way.is_empty() {
        let (kind, members) = (ForecastStepKind::Restart, &restart.members);
        let when = ForecastTime::UnderWay;
        steps.push(ForecastStep::of(kind, when, members, &under_way, "it is under way"));
    }
    if !chosen.is_empty() {
        cluster.add_steps(&after, &chosen, when, &mut steps);
        when = ForecastTime::Later;
    }
    for key in [REQUEST, CANCEL] {
        cluster.snapshot.cluster.annotations.remove(key);
    }
    cluster.succeed(after, &(&under_way | &chosen));
    let blocked = cluster.play(when, &mut steps);
    carry_out_updates(&mut steps, snapshot, policy, &restart);
    let (not_yet, never) = split(&mut cluster, !under_way.is_empty(), blocked);
    let request = restart.request;
    let other_updates = other_updates(snapshot, policy, request.strategy, &steps);
    Forecast {
        request,
        basis,
        blocked_by,
        is_refused: false,
        steps,
        waiting,
        not_yet,
        never,
        other_updates,
    }
}

/// Puts the request on the SearchCluster, as if the restart under way had ended; that one is returned. Without a
/// request: the restart under way, or else the request that is about to be accepted, or else one for every
/// node.
fn assume(cluster: &mut IdealCluster<'_>, request: Option<&Request>) -> (Basis, Option<Waiting>) {
    let Some(request) = request else {
        if cluster.snapshot.ledger.restart.is_some() {
            return (Basis::UnderWay, None);
        }
        let Plan { actions, .. } = cluster.plan();
        let after = ledger_after(&actions, &cluster.snapshot.ledger);
        if after.restart.is_some() || after.queued.is_some() {
            return (Basis::Requested, None);
        }
        let claimed = actions.into_iter().find_map(|action| {
            let Action::ClaimTrigger { request, .. } = action else { return None };
            Some(request)
        });
        let basis = if claimed.is_some() { Basis::Requested } else { Basis::Hypothetical };
        let of_every_node = || Request { id: HYPOTHETICAL_ID.into(), ..Request::default() };
        put_request(&mut cluster.snapshot, &claimed.unwrap_or_else(of_every_node));
        return (basis, None);
    };
    let ledger = cluster.snapshot.ledger.clone();
    let under_way = uids(&ledger, Member::is_under_way);
    cluster.succeed(ledger, &under_way);
    cluster.snapshot.ledger.queued = None;
    let other = cluster.snapshot.ledger.restart.take();
    put_request(&mut cluster.snapshot, request);
    let queued_behind = other.map(|other| {
        let id = other.request.id;
        let message = format!("restart {id} is under way: the request waits until it is over");
        of_cluster(Code::AnotherInProgress, message)
    });
    (Basis::Hypothetical, queued_behind)
}

/// Puts the request into the annotation, as if a user made it now.
fn put_request(snapshot: &mut Snapshot, request: &Request) {
    let Snapshot { cluster, ledger, .. } = snapshot;
    ledger.handled.retain(|id| *id != request.id);
    cluster.has_status = true;
    cluster.annotations.remove(PHASE);
    cluster.annotations.remove(CANCEL);
    // A request that cannot be written as JSON becomes an empty text, which is refused.
    let text = serde_json::to_string(request).unwrap_or_default();
    cluster.annotations.insert(REQUEST.into(), text);
}

/// Splits the nodes that are `blocked` into those that are not blocked any more once every node that is
/// starting serves, every copy that has a node is complete and every snapshot has ended, and the others. While
/// the engine does not answer because nodes are being restarted, no node can be judged.
fn split(
    cluster: &mut IdealCluster<'_>,
    is_under_way: bool,
    blocked: Vec<Waiting>,
) -> (Vec<Waiting>, Vec<Waiting>) {
    if blocked.is_empty() {
        return (Vec::new(), blocked);
    }
    if cluster.snapshot.engine.is_err() {
        let returns = is_under_way || !cluster.starting().is_empty();
        return blocked.into_iter().partition(|one| returns && one.code == Code::EngineUnreachable);
    }
    cluster.wait_a_while();
    let left = cluster.play(ForecastTime::Later, &mut Vec::new());
    let never: BTreeSet<Option<String>> = left.into_iter().map(|one| one.pod).collect();
    blocked.into_iter().partition(|one| !never.contains(&one.pod))
}

/// The forecast of a request that leads to no restart.
fn without_restart(
    snapshot: &Snapshot,
    policy: &Policy,
    basis: Basis,
    after: &Ledger,
    blocked_by: Option<Waiting>,
    waiting: Vec<Waiting>,
) -> Forecast {
    let text = snapshot.cluster.annotations.get(REQUEST);
    let in_annotation = || text.and_then(|text| Request::parse(text).ok()).unwrap_or_default();
    let request = after.queued.clone().unwrap_or_else(in_annotation);
    let blocked_by = if snapshot.cluster.deleting {
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
    let other_updates = other_updates(snapshot, policy, request.strategy, &[]);
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

/// Uids of the pods whose nodes get a slot between these ledgers.
fn begun(before: &Ledger, after: &Ledger) -> BTreeSet<String> {
    let under_way = uids(before, Member::is_under_way);
    uids(after, |member| member.is_under_way() && !under_way.contains(&member.pod_uid))
}

/// The reason that blocks the cluster as a whole; a step that only takes time does not.
fn cluster_blocker(waiting: &[Waiting]) -> Option<Waiting> {
    let all = waiting.iter().find(|one| one.pod.is_none());
    all.filter(|one| one.code.blocks() || one.code.waits_for_its_time()).cloned()
}

fn of_cluster(code: Code, message: impl Into<Cow<'static, str>>) -> Waiting {
    Waiting { pod: None, node: None, code, message: message.into() }
}

/// The nodes whose pods lack a template change that none of `steps` carries out, and what happens to it.
fn other_updates(
    snapshot: &Snapshot,
    policy: &Policy,
    strategy: Strategy,
    steps: &[ForecastStep],
) -> Vec<ForecastNode> {
    if policy.update.is_empty() {
        return Vec::new();
    }
    let nodes = steps.iter().flat_map(|step| &step.nodes);
    let carried_out: BTreeSet<&str> =
        nodes.filter(|node| !node.because.is_empty()).map(|node| node.name.as_str()).collect();
    let other = |pod: &Pod| {
        let update = pod.update.as_ref().ok()?.as_ref()?;
        let is_other = update.step != UpdateStep::None && !carried_out.contains(pod.node.as_str());
        is_other.then(|| ForecastNode {
            name: pod.node.clone(),
            message: what_becomes_of(update, snapshot, policy, strategy, pod),
            step: update.step,
            because: update.because.clone(),
        })
    };
    let mut nodes: Vec<ForecastNode> = snapshot.pods.iter().filter_map(other).collect();
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    nodes
}

fn what_becomes_of(
    update: &PodUpdate,
    snapshot: &Snapshot,
    policy: &Policy,
    strategy: Strategy,
    pod: &Pod,
) -> String {
    let text = if !policy.update.contains(&update.step) {
        "not carried out: spec.update.allow does not have this step; add it there, or delete the pod \
         yourself"
    } else if let Some(why) =
        pod.undeletable.as_ref().filter(|_| update.step == UpdateStep::Replace)
    {
        return format!("not carried out: the pod cannot be deleted: {why}");
    } else if let Some(why) =
        pod.unchangeable.as_ref().filter(|_| update.step != UpdateStep::Replace)
    {
        return format!("not carried out: the apiserver refuses to change the pod: {why}");
    } else if update.step == UpdateStep::Relabel {
        if snapshot.cluster.paused {
            "without a restart, once spec.paused is false"
        } else {
            "without a restart"
        }
    } else if strategy == Strategy::Coordinated {
        "a coordinated restart does not carry it out; another restart follows"
    } else {
        "with its restart"
    };
    text.to_owned()
}
