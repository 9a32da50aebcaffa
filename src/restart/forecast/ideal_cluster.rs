//! The assumption of a forecast: every stop succeeds at once, every node that is started joins, and all
//! shard copies that have a node are complete.

use std::collections::{BTreeMap, BTreeSet};

use super::{ForecastNode, ForecastStep, ForecastStepKind, ForecastTime, begun, uids};
use crate::annotation;
use crate::context::Context;
use crate::flow::decide;
use crate::rules::{StopImpact, order, reason_for_order};
use crate::{
    Action, Code, Color, Debts, Ending, Engine, Ledger, Member, MemberStep, Node, Plan, Policy,
    Restart, ShardCopies, ShardCopy, Snapshot, Waiting,
};
use stayput_api::{Desired, State};

/// How many plans in a row may change the ledger without a slot before the forecast ends.
const MOST_WRITES: usize = 3;

/// A cluster in which each plan has succeeded before the next one is made.
#[derive(Debug)]
pub(super) struct IdealCluster<'p> {
    pub(super) snapshot: Snapshot,
    policy: &'p Policy,
}

impl<'p> IdealCluster<'p> {
    pub(super) fn new(snapshot: &Snapshot, policy: &'p Policy) -> Self {
        let mut snapshot = snapshot.clone();
        // To add a missing finalizer takes one write and blocks no node.
        snapshot.cluster.finalizer = true;
        // Nodes leave after the restart.
        snapshot.node_sets = None;
        Self { snapshot, policy }
    }

    /// The plan for now. Patches that show phases on pods are left out: they would take the place of the
    /// reasons why the nodes wait.
    pub(super) fn plan(&self) -> Plan {
        decide(&Context::new(&self.snapshot, self.policy)).without_patches().into_plan()
    }

    /// Plans and succeeds until no node is left or may go. Adds a step for the nodes of each plan, and returns
    /// the nodes that are left, and why.
    pub(super) fn play(
        &mut self,
        mut when: ForecastTime,
        steps: &mut Vec<ForecastStep>,
    ) -> Vec<Waiting> {
        self.remove_cluster_blockers();
        let mut writes = 0;
        loop {
            let left = uids(&self.snapshot.ledger, |member| member.step == MemberStep::Scheduled);
            if left.is_empty() {
                return Vec::new();
            }
            let plan = self.plan();
            let waiting = |plan: Plan| {
                let is_left =
                    |one: &Waiting| one.pod.as_ref().is_some_and(|uid| left.contains(uid));
                plan.waiting.into_iter().filter(is_left).collect()
            };
            let Some(Action::WriteLedger(after)) = plan.actions.first() else {
                return waiting(plan);
            };
            if id_of(after) != id_of(&self.snapshot.ledger) {
                return self.left_by(after, &left);
            }
            let begun = begun(&self.snapshot.ledger, after);
            if !begun.is_empty() {
                self.add_steps(after, &begun, when, steps);
                (when, writes) = (ForecastTime::Later, 0);
            } else if writes == MOST_WRITES {
                return waiting(plan);
            } else {
                writes += 1;
            }
            self.succeed((**after).clone(), &begun);
        }
    }

    /// Adds the step of the nodes that get their slots by a plan, which makes the ledger `after` of that in the
    /// snapshot.
    pub(super) fn add_steps(
        &self,
        after: &Ledger,
        begun: &BTreeSet<String>,
        when: ForecastTime,
        steps: &mut Vec<ForecastStep>,
    ) {
        let Some(restart) = &after.restart else { return };
        if restart.is_coordinated() {
            return add_coordinated_steps(restart, when, steps);
        }
        if restart.request.goes_as_a_whole() {
            let zone = restart.request.target.zone.as_deref().unwrap_or_default();
            let message = format!("the nodes of zone {zone} go together");
            let kind = ForecastStepKind::Restart;
            return steps.push(ForecastStep::of(kind, when, &restart.members, begun, &message));
        }
        let context = Context::new(&self.snapshot, self.policy);
        let engine = context.index.engine().ok();
        let mut evaluation = context.evaluate(&self.snapshot.ledger).ok();
        let pods = context.index.pods().filter(|pod| begun.contains(&pod.uid));
        let nodes = order(pods, engine).into_iter().map(|pod| {
            let unavailable = evaluation.as_mut().map_or_else(String::new, |evaluation| {
                let impact = StopImpact::of(pod, evaluation);
                evaluation.take_slot(&pod.uid);
                impact.unavailable
            });
            let message = format!("{}{unavailable}", reason_for_order(pod, engine));
            ForecastNode::new(&pod.node, message)
        });
        let nodes = nodes.collect();
        steps.push(ForecastStep { kind: ForecastStepKind::Restart, when, nodes });
    }

    /// Takes the ledger of a plan, after the turns of these nodes: they are done, all debts are paid, and the
    /// allocation setting is restored.
    pub(super) fn succeed(&mut self, ledger: Ledger, done: &BTreeSet<String>) {
        let snapshot = &mut self.snapshot;
        snapshot.ledger = ledger;
        snapshot.ledger.debts = Debts::default();
        if let Ok(engine) = &mut snapshot.engine
            && let Ok(allocation) = &mut engine.allocation
            && let Some(ours) =
                allocation.marker.take_if(|one| one.cluster == snapshot.cluster.name)
        {
            allocation.setting = ours.before;
        }
        let mut finished = Vec::new();
        for member in snapshot.ledger.restart.iter_mut().flat_map(|restart| &mut restart.members) {
            if done.contains(&member.pod_uid) {
                member.step = MemberStep::Finished;
                member.ending = Some(Ending::done());
                finished.push(member.clone());
            }
        }
        // Between two nodes nobody is under way, and the cluster still recovers from the last one.
        if snapshot.ledger.members().any(|member| member.step == MemberStep::Finished) {
            self.bring_back(&finished);
        }
    }

    /// Lets every node that is starting serve, and every snapshot of the engine end: what needs only time.
    pub(super) fn wait_a_while(&mut self) {
        let starting = self.starting();
        self.bring_back(&starting);
        let nodes = self.snapshot.engine.iter_mut().flat_map(|engine| &mut engine.nodes);
        nodes.for_each(|node| node.snapshot = None);
    }

    /// The nodes that are starting: as members of the restart, so that what the ledger remembers of them is
    /// known.
    pub(super) fn starting(&self) -> Vec<Member> {
        let pods = self.snapshot.pods.iter().filter(|pod| {
            pod.manager.as_ref().is_ok_and(|manager| {
                manager.desired == Desired::Running
                    && matches!(manager.state, State::Starting | State::Backoff)
            })
        });
        let known = |uid: &str| self.snapshot.ledger.members().find(|one| one.pod_uid == uid);
        let member = pods.map(|pod| {
            known(&pod.uid).cloned().unwrap_or_else(|| Member {
                pod_uid: pod.uid.clone(),
                pod: pod.name.clone(),
                node: pod.node.clone(),
                ..Member::default()
            })
        });
        member.collect()
    }

    /// Removes the reasons that block every restart of the cluster, and the pause after a slot was given back.
    fn remove_cluster_blockers(&mut self) {
        let cluster = &mut self.snapshot.cluster;
        cluster.paused = false;
        cluster.closed_until = None;
        cluster.annotations.retain(|key, _| !annotation::is_gate(key));
        cluster.overlaps.clear();
        for operator in self.snapshot.pods.iter_mut().filter_map(|pod| pod.operator.as_mut()) {
            operator.replaces_pods = false;
        }
        if let Some(restart) = &mut self.snapshot.ledger.restart {
            restart.request.not_before = None;
            restart.request.deadline = None;
            restart.members.iter_mut().for_each(|member| member.given_back = 0);
        }
    }

    /// Why these nodes are not restarted by a restart that has ended.
    fn left_by(&self, after: &Ledger, left: &BTreeSet<String>) -> Vec<Waiting> {
        let id = id_of(&self.snapshot.ledger);
        let entry = after.history.iter().rev().find(|entry| Some(entry.id.as_str()) == id);
        let ending = entry.map_or_else(String::new, |entry| {
            format!(": the restart ends as {} ({})", entry.outcome.as_str(), entry.reason)
        });
        let message = format!("no further node is stopped{ending}");
        let pods = self.snapshot.pods.iter().filter(|pod| left.contains(&pod.uid));
        let waiting = pods.map(|pod| Waiting {
            pod: Some(pod.uid.clone()),
            node: Some(pod.node.clone()),
            code: Code::NotItsTurn,
            message: message.clone().into(),
        });
        waiting.collect()
    }

    /// Makes the nodes of these members serve, and lets copies that are being built be complete.
    fn bring_back(&mut self, members: &[Member]) {
        let snapshot = &mut self.snapshot;
        let uids: BTreeSet<&str> = members.iter().map(|member| &*member.pod_uid).collect();
        for pod in snapshot.pods.iter_mut().filter(|pod| uids.contains(&*pod.uid)) {
            pod.ready = true;
            pod.crash_looping = false;
            if let Ok(manager) = &mut pod.manager {
                manager.state = State::Running;
                manager.desired = Desired::Running;
                manager.ready = Some(true);
            }
        }
        let Ok(engine) = &mut snapshot.engine else { return };
        let listed: BTreeSet<String> = engine.nodes.iter().map(|node| node.name.clone()).collect();
        let absent = members.iter().filter(|member| !listed.contains(&member.node));
        let joining: Vec<Node> = absent.map(|member| node_of(member, engine)).collect();
        engine.nodes.extend(joining);
        // What the cluster misses may be what it has been missing since the nodes before.
        let done = snapshot.ledger.members().filter(|member| member.step == MemberStep::Finished);
        let returned = members.iter().chain(done.filter(|member| listed.contains(&member.node)));
        let holds_data: BTreeMap<&str, bool> =
            engine.nodes.iter().map(|node| (&*node.name, node.holds_data())).collect();
        let takes_copies = |member: &&Member| {
            let is_unknown = !listed.contains(&member.node) && member.roles.is_empty();
            is_unknown || holds_data.get(&*member.node) == Some(&true)
        };
        let nodes: Vec<String> =
            returned.filter(takes_copies).map(|member| member.node.clone()).collect();
        complete_copies(engine, &nodes);
    }
}

/// Id of the restart under way.
fn id_of(ledger: &Ledger) -> Option<&str> {
    ledger.restart.as_ref().map(|restart| restart.request.id.as_str())
}

/// A node that the engine does not list, as its ledger entry describes it.
fn node_of(member: &Member, engine: &Engine) -> Node {
    Node {
        id: member.node_id.clone().unwrap_or_else(|| format!("returned {}", member.node)),
        name: member.node.clone(),
        ephemeral_id: format!("returned {}", member.node),
        roles: member.roles.clone(),
        roles_unknown: false,
        zone: member.zone.clone(),
        version: engine.nodes.first().map(|node| node.version.clone()).unwrap_or_default(),
        heap_max: None,
        snapshot: None,
    }
}

/// Makes all copies started, and the health that of a cluster that waits for nothing.
fn complete_copies(engine: &mut Engine, nodes: &[String]) {
    let Ok(shards) = &mut engine.shards else { return };
    let is_complete = shards.iter().all(|copy| copy.node.is_some() && copy.started);
    let (primaries, replicas) = if is_complete { (0, 0) } else { place_copies(shards, nodes) };
    let data_nodes = engine.nodes.iter().filter(|node| node.holds_data()).count();
    if let Ok(health) = &mut engine.health {
        health.color = if primaries > 0 {
            Color::Red
        } else if replicas > 0 {
            Color::Yellow
        } else {
            Color::Green
        };
        health.data_nodes = u32::try_from(data_nodes).unwrap_or(u32::MAX);
        health.timed_out = false;
        health.initializing = 0;
        health.relocating = 0;
        health.delayed = 0;
        health.in_flight_fetch = 0;
        health.unassigned = primaries + replicas;
    }
}

/// Makes each copy that has a place started, and places each unassigned one on one of `nodes`, no two copies of a
/// shard on the same node: allocation was limited all the time. Returns how many primaries and replicas have no
/// place.
fn place_copies(shards: &mut ShardCopies, nodes: &[String]) -> (u32, u32) {
    let mut copies = shards.to_vec();
    let place = |copy: &ShardCopy, node: &String| (copy.index.clone(), copy.shard, node.clone());
    let placed = |copy: &ShardCopy| copy.node.as_ref().map(|node| place(copy, node));
    let mut taken: BTreeSet<(String, u32, String)> = copies.iter().filter_map(placed).collect();
    let (mut primaries, mut replicas) = (0, 0);
    for copy in &mut copies {
        if copy.node.is_none() {
            let free = nodes.iter().find(|node| taken.insert(place(copy, node)));
            copy.node = free.cloned();
        }
        if copy.node.is_some() {
            copy.started = true;
        } else if copy.primary {
            primaries += 1;
        } else {
            replicas += 1;
        }
    }
    *shards = copies.into_iter().collect();
    (primaries, replicas)
}

/// Adds the steps of a coordinated restart that are left: all nodes are stopped, then all are started.
pub(super) fn add_coordinated_steps(
    restart: &Restart,
    when: ForecastTime,
    steps: &mut Vec<ForecastStep>,
) {
    let members = &restart.members;
    let unfinished = |which: &dyn Fn(&Member) -> bool| -> BTreeSet<String> {
        let left = members.iter().filter(|one| one.step != MemberStep::Finished && which(one));
        left.map(|member| member.pod_uid.clone()).collect()
    };
    let mut add = |kind, when, which: &BTreeSet<String>, message| {
        if !which.is_empty() {
            steps.push(ForecastStep::of(kind, when, members, which, message));
        }
    };
    let all = unfinished(&|_| true);
    if members.iter().any(|member| member.step == MemberStep::Aborting) {
        return add(ForecastStepKind::Start, when, &all, "it is being brought back");
    }
    let mut start_time = when;
    if restart.frozen.is_none() {
        add(ForecastStepKind::Stop, when, &all, "every node is stopped before any is started");
        start_time = ForecastTime::Later;
    }
    let masters = unfinished(&|member| member.master_eligible);
    let message = "it is master-eligible: those are started first";
    add(ForecastStepKind::Start, start_time, &masters, message);
    let others = unfinished(&|member| !member.master_eligible);
    let message = "it is started after the master-eligible nodes";
    add(ForecastStepKind::Start, start_time, &others, message);
}
