//! A dry run of a whole restart: who goes with whom and in which order if every step succeeds, and
//! what keeps the others from going.
//!
//! There is no second opinion in here. What would happen now is what [`super::plan()`] says; what comes
//! after it is asked of the same rules, on the assumption that each node comes back and leaves the
//! cluster as the snapshot shows it ([`back`]).

mod back;
mod scene;
mod together;
mod walk;

use std::collections::BTreeSet;

use super::context::Context;
use super::flow::decide;
use super::lookup::Lookup;
use super::{
    Action, Code, Ledger, Member, Plan, Policy, Request, Restart, Snapshot, Step, Strategy, Waiting,
};
use scene::Scene;
use together::{coordinated, together};
use walk::walk;

/// What a restart comes to from here on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// What the restart was, or would be, asked for.
    pub request: Request,
    /// Where the request comes from.
    pub basis: Basis,
    /// What keeps the restart as a whole from going on now; the steps are told as if it were lifted.
    pub held: Option<Waiting>,
    /// What happens, in its order.
    pub steps: Vec<Stage>,
    /// Every node nothing is begun for now, and why.
    pub waiting: Vec<Waiting>,
    /// The nodes that never get a turn unless something changes: the first rule in the way of each.
    pub never: Vec<Waiting>,
}

/// Where the request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Its restart is under way.
    UnderWay,
    /// Somebody has asked, or the spec asks by itself, and it is about to begin.
    Asked,
    /// Nobody has asked: this is what a request would do.
    Supposed,
}

/// Nodes that go together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// What is done.
    pub kind: StageKind,
    /// When.
    pub when: When,
    /// The nodes, in their order.
    pub turns: Vec<Turn>,
}

/// What is done with nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageKind {
    /// Each is stopped and started.
    Restart,
    /// All are stopped.
    Stop,
    /// All are started.
    Start,
}

/// When it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// It has begun.
    UnderWay,
    /// At once.
    Now,
    /// When what comes before it is over, and nothing holds the restart.
    Later,
}

/// One node's part in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Name of the node.
    pub node: String,
    /// Why it is its turn, in a sentence.
    pub why: String,
}

/// Tells what the restart under way will do, or that which is about to begin; where there is none,
/// what `request` would do, and without one what a rolling restart of every node would. With a
/// request while another restart is under way: what it does once that is over.
pub fn forecast(snapshot: &Snapshot, policy: &Policy, request: Option<&Request>) -> Forecast {
    let mut scene = Scene::of(snapshot, policy, request);
    let Plan { actions, waiting, .. } = decided(&scene.snapshot, policy);
    let after = ledger_after(&actions, &scene.snapshot.ledger).clone();
    let of_all = held_by(&waiting);
    let Some(restart) = after.restart.clone() else {
        return nothing(&scene, &after, of_all, waiting);
    };
    let under_way = uids(&scene.snapshot.ledger, Member::is_under_way);
    let mut chosen = uids(&after, Member::is_under_way);
    chosen.retain(|uid| !under_way.contains(uid));
    let behind = scene.held.take();
    let waiting = not_chosen(waiting, &restart, &chosen, behind.as_ref());
    let held = behind.or(of_all);
    let is_now = held.is_none() && under_way.is_empty();
    let at_once = restart.request.is_at_once();
    let mut steps = Vec::new();
    let is_coordinated = restart.request.strategy == Strategy::Coordinated;
    if is_coordinated && !under_way.is_empty() {
        coordinated(&restart, When::UnderWay, &mut steps);
    } else if !under_way.is_empty() {
        let why = "it is under way";
        let members = &restart.members;
        steps.push(stage(StageKind::Restart, When::UnderWay, members, &under_way, why));
    }
    scene.go_on(after, &under_way, &chosen);
    let never = match restart.request.strategy {
        Strategy::Rolling if at_once => together(&mut scene, policy, is_now, &mut steps),
        Strategy::Coordinated => together(&mut scene, policy, is_now, &mut steps),
        Strategy::Immediate | Strategy::Rolling => walk(&mut scene, policy, is_now, &mut steps),
    };
    let request = restart.request;
    Forecast { request, basis: scene.basis, held, steps, waiting, never }
}

/// What is decided now. Phases that are yet to be shown on pods count for nothing: they would take
/// the place of the reasons why the nodes wait.
fn decided(snapshot: &Snapshot, policy: &Policy) -> Plan {
    decide(&Context::new(snapshot, policy)).without_patches().into_plan()
}

/// No restart comes of it.
fn nothing(
    scene: &Scene,
    after: &Ledger,
    held: Option<Waiting>,
    waiting: Vec<Waiting>,
) -> Forecast {
    let request = after.queued.clone().unwrap_or_else(|| scene.request());
    let refused = || {
        let new = after.history.last().filter(|last| last.id == request.id)?;
        Some(of_cluster(Code::InvalidInput, format!("the request is refused: {}", new.reason)))
    };
    let deleting = scene.snapshot.cluster.deleting;
    let held = if deleting {
        let message = "the SearchCluster is being deleted: nothing is begun";
        Some(of_cluster(Code::Idle, message.into()))
    } else {
        held.or_else(refused)
    };
    let waiting = waiting.into_iter().filter(|one| one.pod.is_some()).collect();
    let basis = scene.basis;
    Forecast { request, basis, held, steps: Vec::new(), waiting, never: Vec::new() }
}

/// What a plan says of the nodes that are not chosen, in its words; `behind` is what the request
/// as a whole waits for.
fn not_chosen(
    told: Vec<Waiting>,
    restart: &Restart,
    chosen: &BTreeSet<String>,
    behind: Option<&Waiting>,
) -> Vec<Waiting> {
    let members = restart.members.iter();
    let steps: Lookup<'_, Step> =
        members.map(|member| (member.pod_uid.as_str(), member.step)).collect();
    let mut waiting = Vec::with_capacity(told.len());
    for mut one in told {
        let Some(uid) = &one.pod else { continue };
        let step = steps.get(uid.as_str());
        if let (Some(behind), Some(_)) = (behind, step) {
            (one.code, one.message) = (behind.code, behind.message.clone());
        } else if chosen.contains(uid) {
            continue;
        } else if one.code == Code::Recording {
            // A plan that writes the ledger has no words for those nothing happens to.
            let (code, message) = match step {
                Some(Step::Finished) => (Code::Finished, "it is done"),
                Some(_) => (Code::NotItsTurn, "its turn comes later"),
                None => (Code::Idle, "nothing was asked of it"),
            };
            (one.code, one.message) = (code, message.into());
        }
        waiting.push(one);
    }
    waiting
}

/// A step of these members.
fn stage(
    kind: StageKind,
    when: When,
    members: &[Member],
    which: &BTreeSet<String>,
    why: &str,
) -> Stage {
    let members = members.iter().filter(|member| which.contains(&member.pod_uid));
    let turns = members.map(|member| Turn { node: member.node.clone(), why: why.into() });
    Stage { kind, when, turns: turns.collect() }
}

/// The ledger as a plan leaves it.
fn ledger_after<'a>(actions: &'a [Action], before: &'a Ledger) -> &'a Ledger {
    match actions.first() {
        Some(Action::WriteLedger(ledger)) => ledger,
        Some(_) | None => before,
    }
}

/// Uids of the pods of members.
fn uids(ledger: &Ledger, which: impl Fn(&Member) -> bool) -> BTreeSet<String> {
    ledger.members().filter(|member| which(member)).map(|member| member.pod_uid.clone()).collect()
}

/// What keeps the whole from going on, of what a plan says of the cluster: not what merely takes
/// its time.
fn held_by(waiting: &[Waiting]) -> Option<Waiting> {
    let all = waiting.iter().find(|one| one.pod.is_none());
    all.filter(|one| one.code.blocks() || one.code == Code::NotBefore).cloned()
}

fn of_cluster(code: Code, message: String) -> Waiting {
    Waiting { pod: None, node: None, code, message }
}
