//! How long one plan takes, by the number of pods and by what is going on.
//!
//! Usage: `bench-plan [ROUNDS [SITUATION]]`. For each situation a line: its name, then for 10, 100, 1,000 and
//! 10,000 pods the milliseconds of one `plan()`, of one `report()` on it, and of the sum over all
//! bytes of the snapshot: what it takes to look at each once, in caches that hold the small ones
//! only. Each is the lowest of the rounds: others on the machine only ever add.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::time::Instant;

use stayput::api::{ConfigChoice, Desired, State};
use stayput::restart::{
    Action, Allocation, AllocationBefore, AllocationDebt, Cluster, Code, Color, Engine, Fence,
    Health, Ledger, Manager, Marker, Member, Node, Once, Plan, Pod, Policy, Reason, Request,
    Restart, Run, ShardCopy, Snapshot, Sources, Step, Strategy, Time, Voting, annotation, plan,
    report,
};

const SIZES: [usize; 4] = [10, 100, 1_000, 10_000];
/// Of each node.
const COPIES: usize = 20;
const NOW: Time = Time(1_795_000_000_000);
const ID: &str = "1c7d9e52";

/// What goes on in a cluster of so many nodes.
type Situation = fn(usize) -> (Snapshot, Policy);
/// Whether the plan is about what the situation's name says: a plan about nothing would be fast for
/// the wrong reason.
type Comes = fn(&Plan, usize) -> bool;

const SITUATIONS: [(&str, Situation, Comes); 14] = [
    ("idle", |n| (at_rest(n), Policy::default()), |plan, n| waits(plan, Code::Idle) == n),
    ("drifting", drifting, |plan, n| waits(plan, Code::PendingRestart) == n),
    ("requested", requested, |plan, n| slots(plan) == 1 && members(plan) == n),
    ("asked-on-every-pod", asked, |plan, n| members(plan) == n),
    ("next", |n| (shown(rolling(n, 0)), Policy::default()), |plan, _| slots(plan) == 1),
    ("last-but-one", |n| (shown(rolling(n, n - 2)), Policy::default()), |plan, _| slots(plan) == 1),
    ("to-be-shown", to_be_shown, |plan, n| patches(plan) == n),
    ("under-way", under_way, |plan, _| stops(plan) == 1),
    ("blocked-by-health", blocked_by_health, |plan, n| waits(plan, Code::Health) == n),
    ("blocked-by-shards", blocked_by_shards, |plan, n| waits(plan, Code::LastCopy) == n),
    ("tenth-kept-stopped", kept_stopped, |plan, n| waits(plan, Code::KeptStopped) == n / 10),
    ("immediate-all", immediate, |plan, n| slots(plan) == n),
    ("coordinated-begin", coordinated_begin, |plan, n| slots(plan) == n),
    ("coordinated-end", coordinated_end, |plan, n| backs(plan) == n),
];

fn waits(plan: &Plan, code: Code) -> usize {
    plan.waiting.iter().filter(|one| one.pod.is_some() && one.code == code).count()
}

fn tells(plan: &Plan, wanted: &[Reason]) -> usize {
    let is_wanted =
        |action: &&Action| matches!(action, Action::Tell(event) if wanted.contains(&event.reason));
    plan.actions.iter().filter(is_wanted).count()
}

fn slots(plan: &Plan) -> usize {
    tells(plan, &[Reason::NodeRestartStarted, Reason::MasterRestartStarted])
}

fn backs(plan: &Plan) -> usize {
    tells(plan, &[Reason::NodeRestarted])
}

fn stops(plan: &Plan) -> usize {
    plan.actions.iter().filter(|action| matches!(action, Action::Stop { .. })).count()
}

fn patches(plan: &Plan) -> usize {
    plan.actions.iter().filter(|action| matches!(action, Action::PatchPod { .. })).count()
}

/// In the ledger as it is written.
fn members(plan: &Plan) -> usize {
    plan.actions
        .iter()
        .find_map(|action| match action {
            Action::WriteLedger(ledger) => Some(ledger.restart.as_ref()?.members.len()),
            _ => None,
        })
        .unwrap_or(0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = std::env::args().nth(1).map_or(Ok(20), |rounds| rounds.parse::<u32>())?;
    let wanted = std::env::args().nth(2);
    let is_wanted = |name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
    for (name, situation, comes) in SITUATIONS.into_iter().filter(|(name, ..)| is_wanted(name)) {
        let mut line = name.to_owned();
        for nodes in SIZES {
            let (snapshot, policy) = situation(nodes);
            let planned = plan(&snapshot, &policy);
            assert!(comes(&planned, nodes), "{name}: not what {nodes} nodes come to");
            assert!(covers(&snapshot, &planned), "{name}: a pod is missing in the plan");
            // The large ones need no repetition against the clock's grain.
            let rounds = if nodes >= 10_000 { rounds.min(8) } else { rounds };
            let planning = lowest(rounds, || drop(black_box(plan(&snapshot, &policy))));
            let reporting =
                lowest(rounds, || drop(black_box(report(&snapshot, &policy, &planned))));
            let reading = lowest(rounds, || _ = black_box(sum(&snapshot)));
            line.push_str(&format!(" {planning:.4} {reporting:.4} {reading:.4}"));
        }
        println!("{line}");
    }
    Ok(())
}

/// Milliseconds of the fastest round.
fn lowest(rounds: u32, mut work: impl FnMut()) -> f64 {
    let times = (0..rounds.max(1)).map(|_| {
        let began = Instant::now();
        work();
        began.elapsed().as_secs_f64() * 1e3
    });
    times.fold(f64::INFINITY, f64::min)
}

/// Every text of every pod, node and shard copy, looked at once.
fn sum(snapshot: &Snapshot) -> u64 {
    let bytes = |text: &str| text.bytes().map(u64::from).sum::<u64>();
    let pod = |pod: &Pod| {
        let manager = pod.manager.as_ref().ok();
        let run = manager.and_then(|manager| manager.run.as_ref()?.checksum.as_deref());
        let uid = manager.and_then(|manager| manager.pod_uid.as_deref());
        [Some(&*pod.uid), Some(&*pod.name), Some(&*pod.node), uid, run]
            .into_iter()
            .flatten()
            .chain(pod.annotations.values().map(String::as_str))
            .map(bytes)
            .sum::<u64>()
    };
    let engine = snapshot.engine.iter();
    let nodes = engine.clone().flat_map(|engine| &engine.nodes);
    let copies = engine.flat_map(|engine| engine.shards.iter().flatten());
    let copy = |copy: &ShardCopy| bytes(&copy.index) + copy.node.as_deref().map_or(0, bytes);
    snapshot.pods.iter().map(pod).sum::<u64>()
        + nodes.map(|node| bytes(&node.id) + bytes(&node.name)).sum::<u64>()
        + copies.map(copy).sum::<u64>()
}

/// Every pod is acted on or told why not.
fn covers(snapshot: &Snapshot, planned: &Plan) -> bool {
    let acted = planned.actions.iter().filter_map(Action::pod);
    let told = planned.waiting.iter().filter_map(|waiting| waiting.pod.as_deref());
    let all: BTreeSet<&str> = acted.chain(told).collect();
    snapshot.pods.iter().all(|pod| all.contains(pod.uid.as_str()))
}

/// Every node runs on the config its sources have; green; three masters.
fn at_rest(nodes: usize) -> Snapshot {
    let pods = (0..nodes).map(pod).collect();
    Snapshot {
        now: NOW,
        fresh_id: "f00dbeef".into(),
        cluster: Cluster {
            name: "search/logs".into(),
            finalizer: true,
            has_status: true,
            ..Cluster::default()
        },
        ledger: Ledger { cluster_uuid: Some("uuid".into()), ..Ledger::default() },
        pods,
        engine: Ok(engine(nodes)),
        flushed: BTreeSet::new(),
    }
}

/// Uids come in no order, as those of Kubernetes do.
fn uid(number: usize) -> String {
    let scattered = u64::try_from(number).unwrap_or(0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{:08x}-{:04x}-4000-8000-{number:012x}", scattered >> 32, scattered & 0xffff)
}

fn name(number: usize) -> String {
    format!("logs-data-{number}")
}

fn checksum(round: u32) -> String {
    format!("sha256:{round:064x}")
}

fn pod(number: usize) -> Pod {
    Pod {
        uid: uid(number),
        name: name(number),
        node: name(number),
        annotations: BTreeMap::new(),
        ready: true,
        terminating: false,
        crash_looping: false,
        outdated: None,
        deadly_probe: None,
        sources: Sources::Checksum(checksum(1)),
        manager: Ok(Manager {
            version: "0.1.0".into(),
            pod_uid: Some(uid(number)),
            durable: true,
            desired: Desired::Running,
            state: State::Running,
            ready: Some(true),
            sequence: 4,
            last_request: None,
            run: Some(Run {
                id: format!("run-{number}"),
                checksum: Some(checksum(1)),
                config: ConfigChoice::Mounted,
            }),
            last_exit: None,
            mounted: Some(checksum(1)),
            lagging: None,
            live_mismatch: None,
            last_good: Some(checksum(1)),
            why: None,
        }),
    }
}

fn node_id(number: usize) -> String {
    format!("node-id-{number:012}")
}

/// Shards of two copies, index after index, as `_cat/shards` lists them.
fn engine(nodes: usize) -> Engine {
    let shards = (0..nodes * COPIES / 2).flat_map(|shard| {
        [true, false].map(|primary| {
            let place = if primary { shard } else { shard + 1 + shard / nodes % (nodes - 1) };
            ShardCopy {
                index: format!("logs-2026.11.21-{:06}", shard / 10),
                shard: u32::try_from(shard % 10).unwrap_or(0),
                primary,
                started: true,
                node: Some(name(place % nodes)),
            }
        })
    });
    let shards = shards.collect();
    let masters: BTreeSet<String> = (0..3).map(node_id).collect();
    Engine {
        version: "elasticsearch 8.19.0".into(),
        cluster_uuid: "uuid".into(),
        nodes: (0..nodes).map(node).collect(),
        master: Some(node_id(0)),
        health: Ok(Health {
            color: Color::Green,
            timed_out: false,
            data_nodes: u32::try_from(nodes).unwrap_or(u32::MAX),
            initializing: 0,
            relocating: 0,
            unassigned: 0,
            delayed: 0,
            in_flight_fetch: 0,
        }),
        voting: Ok(Voting::Configurations { committed: masters.clone(), accepted: masters }),
        shards: Ok(shards),
        allocation: Ok(Allocation::default()),
        records: Ok(None),
    }
}

fn node(number: usize) -> Node {
    let roles: &[&str] = match number {
        0..3 => &["data", "ingest", "master"],
        _ if number.is_multiple_of(4) => &["data_warm"],
        _ => &["data_hot", "data_content", "ingest"],
    };
    Node {
        id: node_id(number),
        name: name(number),
        ephemeral_id: format!("process-{number}"),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        zone: Some(format!("zone-{}", number % 3)),
        version: "8.19.0".into(),
    }
}

/// The sources have moved on, and nobody asked for a restart.
fn drifting(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = at_rest(nodes);
    for pod in &mut snapshot.pods {
        pod.sources = Sources::Checksum(checksum(2));
    }
    (snapshot, Policy::default())
}

/// A request that is taken up now: the restart of all nodes is written down.
fn requested(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = at_rest(nodes);
    let request = format!(r#"{{"id":"{ID}","strategy":"rolling"}}"#);
    snapshot.cluster.annotations.insert(annotation::REQUEST.into(), request);
    (snapshot, Policy::default())
}

/// A restart of the first half runs, and a person annotates every pod.
fn asked(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = rolling(nodes, 0);
    if let Some(restart) = &mut snapshot.ledger.restart {
        restart.members.truncate(nodes / 2);
    }
    let mut snapshot = shown(snapshot);
    for pod in &mut snapshot.pods {
        pod.annotations.insert(annotation::PHASE.into(), "schedule-rolling".into());
    }
    (snapshot, Policy::default())
}

fn member(number: usize, step: Step) -> Member {
    Member {
        pod_uid: uid(number),
        pod: name(number),
        node: name(number),
        step,
        since: NOW,
        stop: 3,
        start: 4,
        expected: Some(checksum(1)),
        ephemeral: Some(format!("before-{number}")),
        node_id: Some(node_id(number)),
        ..Member::default()
    }
}

/// A rolling restart of all nodes, so many of them done.
fn rolling(nodes: usize, done: usize) -> Snapshot {
    let members = (0..nodes).map(|number| {
        if number < done {
            return member(number, Step::Finished);
        }
        Member {
            pod_uid: uid(number),
            pod: name(number),
            node: name(number),
            since: NOW,
            ..Member::default()
        }
    });
    let mut snapshot = at_rest(nodes);
    snapshot.ledger.restart = Some(restart(Strategy::Rolling, members.collect()));
    snapshot
}

fn restart(strategy: Strategy, members: Vec<Member>) -> Restart {
    Restart {
        request: Request { id: ID.into(), strategy, ..Request::default() },
        started: NOW,
        direction: stayput::restart::Direction::Open,
        ending: None,
        once: Once::default(),
        frozen: None,
        members,
    }
}

/// Every pod shows what the ledger says.
fn shown(mut snapshot: Snapshot) -> Snapshot {
    let Some(restart) = &snapshot.ledger.restart else { return snapshot };
    let word = |step: Step| match step {
        Step::Scheduled => Some("schedule-rolling"),
        Step::Restarting | Step::Aborting => Some("stop"),
        Step::Finished => None,
    };
    let words: BTreeMap<&str, Option<&str>> =
        restart.members.iter().map(|member| (member.pod_uid.as_str(), word(member.step))).collect();
    for pod in &mut snapshot.pods {
        if let Some(word) = words.get(pod.uid.as_str()).copied().flatten() {
            pod.annotations.insert(annotation::PHASE.into(), word.into());
            pod.annotations.insert(annotation::SHOWN.into(), format!("{ID} {word}"));
        }
    }
    snapshot
}

/// Paused before the first turn, and no pod shows its phase yet.
fn to_be_shown(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = rolling(nodes, 0);
    snapshot.cluster.paused = true;
    (snapshot, Policy::default())
}

/// Half are done, one is about to be stopped, the others wait.
fn under_way(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = rolling(nodes, nodes / 2);
    let number = nodes / 2;
    if let Some(restart) = &mut snapshot.ledger.restart {
        let mut one = member(number, Step::Restarting);
        (one.stop, one.start) = (6, 8);
        one.ephemeral = Some(format!("process-{number}"));
        restart.members[number] = one;
    }
    tighten(&mut snapshot, vec![uid(number)]);
    snapshot.flushed.insert(name(number));
    (shown(snapshot), Policy::default())
}

/// Allocation is ours.
fn tighten(snapshot: &mut Snapshot, holders: Vec<String>) {
    let before = AllocationBefore::default();
    snapshot.ledger.debts.allocation =
        Some(AllocationDebt { restart: ID.into(), before: before.clone(), holders });
    if let Ok(engine) = &mut snapshot.engine {
        engine.allocation = Ok(Allocation {
            setting: AllocationBefore { persistent: Some("primaries".into()), transient: None },
            marker: Some(Marker { cluster: "search/logs".into(), restart: ID.into(), before }),
        });
    }
}

/// Nobody may go: the cluster is red.
fn blocked_by_health(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = shown(rolling(nodes, 0));
    if let Ok(Engine { health: Ok(health), .. }) = &mut snapshot.engine {
        health.color = Color::Red;
        health.unassigned = 4;
    }
    (snapshot, Policy::default())
}

/// Nobody may go: no replica is started.
fn blocked_by_shards(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = shown(rolling(nodes, 0));
    if let Ok(Engine { shards: Ok(copies), .. }) = &mut snapshot.engine {
        copies.iter_mut().for_each(|copy| copy.started = copy.primary);
    }
    (snapshot, Policy::default())
}

/// Every tenth node is kept stopped, and nothing else goes on.
fn kept_stopped(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = at_rest(nodes);
    for number in (0..nodes).step_by(10) {
        snapshot.cluster.stopped.insert(name(number));
        let fence = Fence { pod_uid: uid(number), node: name(number), sequence: 4, lifting: false };
        snapshot.ledger.fences.push(fence);
        if let Ok(manager) = &mut snapshot.pods[number].manager {
            manager.desired = Desired::Stopped;
            manager.state = State::Stopped;
        }
    }
    (snapshot, Policy::default())
}

/// Every node gets its slot in one plan.
fn immediate(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = rolling(nodes, 0);
    if let Some(restart) = &mut snapshot.ledger.restart {
        restart.request.strategy = Strategy::Immediate;
    }
    (snapshot, Policy { max_unavailable: u32::MAX, allow_outage: true, ..Policy::default() })
}

/// Every node gets its slot, for an outage.
fn coordinated_begin(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = rolling(nodes, 0);
    if let Some(restart) = &mut snapshot.ledger.restart {
        restart.request.strategy = Strategy::Coordinated;
    }
    (snapshot, Policy { allow_outage: true, ..Policy::default() })
}

/// Every node has joined again, and allocation is as it was: all are done in one write.
fn coordinated_end(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = at_rest(nodes);
    let members = (0..nodes).map(|number| member(number, Step::Restarting));
    let mut restart = restart(Strategy::Coordinated, members.collect());
    restart.direction = stayput::restart::Direction::Forward;
    restart.once = Once { allocation: true, flush: true };
    restart.frozen = Some(NOW);
    snapshot.ledger.restart = Some(restart);
    snapshot.ledger.debts.allocation = Some(AllocationDebt {
        restart: ID.into(),
        before: AllocationBefore::default(),
        holders: (0..nodes).map(uid).collect(),
    });
    (snapshot, Policy { allow_outage: true, ..Policy::default() })
}
