//! Nodes that are down, and progress that is not blocked.

use serde_json::json;

use super::{condition, manager, member, pod, shown, three, under_way, waits};
use crate::tests::driver::Driver;
use crate::tests::world::World;
use crate::{
    Cluster, Code, Color, Engine, Health, KeptStopped, LastExit, MemberStep, MissingPod, Node,
    NotStarted, OnConfigChange, Operator, OperatorKind, Policy, Predicate, Report, Request,
    Snapshot, Time, Unknown, annotation, plan, reads_engine, report,
};
use stayput_api::{ConfigChoice, Desired, ExitReason, State};

const WHY: &str = "the engine ended with code 78 after 3s before it was ready; start it again when \
                   its config is repaired";

/// `logs-2` did not come back from its restart.
fn failed() -> Snapshot {
    let mut snapshot = three();
    let failed = manager(&mut snapshot, 2);
    failed.state = State::Failed;
    failed.run = None;
    failed.reason = Some(WHY.into());
    failed.last_exit = Some(LastExit {
        run: "run".into(),
        code: Some(78),
        reason: ExitReason::Exited,
        ended: Some(Time(90_000)),
    });
    snapshot
}

fn engine(nodes: &[&str], color: Color) -> Engine {
    let unknown = || Unknown { message: String::new() };
    let node = |name: &&str| Node {
        id: (*name).into(),
        name: (*name).into(),
        ephemeral_id: (*name).into(),
        roles: ["data".to_owned(), "master".to_owned()].into(),
        roles_unknown: false,
        zone: None,
        version: "8.19.0".into(),
        heap_max: None,
        snapshot: None,
    };
    let health = Health {
        color,
        timed_out: false,
        data_nodes: 3,
        initializing: 1,
        relocating: 0,
        unassigned: 0,
        delayed: 0,
        in_flight_fetch: 0,
    };
    Engine {
        version: String::new(),
        cluster_uuid: String::new(),
        nodes: nodes.iter().map(node).collect(),
        elected_master: None,
        health: Ok(health),
        voting: Err(unknown()),
        shards: Err(unknown()),
        searchable_snapshots: Err(unknown()),
        immovable: Default::default(),
        allocation: Err(unknown()),
        records: Err(unknown()),
    }
}

/// Code and message of each node that is down.
fn down(report: &Report) -> Vec<(&str, &str, &str)> {
    let nodes = report.nodes.iter().filter_map(|node| {
        Some((node.name.as_str(), node.down.as_deref()?, node.message.as_deref()?))
    });
    nodes.collect()
}

#[test] // proves RESTART-111
fn a_failed_engine_is_in_the_table_the_condition_and_the_count_with_what_to_do() {
    let snapshot = failed();
    let report = shown(&snapshot, &[waits(Some("logs-2"), Code::Idle, "nothing was asked")]);
    let message = format!(
        "{WHY}; its log: `kubectl -n search logs logs-2 -c search \
         --since-time=1970-01-01T00:00:30.000Z`; to start it: `kubectl stayput -n search restart \
         logs --node logs-2`"
    );
    assert_eq!(down(&report), [("logs-2", "failed", message.as_str())]);
    assert_eq!((report.phase.as_str(), report.counts.down), ("Degraded", 1));
    let sentence = format!("logs-2 is down: {message}");
    assert_eq!(condition(&report, "Degraded"), ("True", "NodesDown", sentence.as_str()));
    assert_eq!(report.message, Some(sentence));
}

#[test]
fn down_is_worse_than_another_config_and_both_are_told_of_a_node() {
    let mut snapshot = failed();
    snapshot.pods[0].sources = crate::Sources::Checksum("newer".into());
    let pending = waits(Some("logs-0"), Code::PendingRestart, "its config has changed");
    let quorum = waits(Some("logs-2"), Code::Quorum, "a majority would be lost");
    let report = shown(&snapshot, &[pending, quorum]);
    let names: Vec<&str> = report.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["logs-2", "logs-0"]);
    let message = report.nodes[0].message.as_deref().unwrap();
    assert!(message.ends_with("--node logs-2`; a majority would be lost"), "{message}");
}

#[test] // proves RESTART-111
fn stopped_by_a_person_is_down_and_kept_stopped_is_not() {
    let mut snapshot = three();
    let stopped = manager(&mut snapshot, 1);
    (stopped.state, stopped.desired) = (State::Stopped, Desired::Stopped);
    stopped.reason = Some("stopped by root at 3".into());
    let message = "stopped by root at 3; to start it: `kubectl -n search exec logs-1 -c search -- stayput start`";
    assert_eq!(down(&shown(&snapshot, &[])), [("logs-1", "stopped", message)]);
    let mut injected = snapshot.clone();
    injected.pods[1].program = Some("/stayput/stayput".into());
    let message = message.replace(" stayput start", " /stayput/stayput start");
    assert_eq!(down(&shown(&injected, &[])), [("logs-1", "stopped", message.as_str())]);

    let mut by_spec = snapshot.clone();
    by_spec.cluster = Cluster { stopped: ["logs-1".to_owned()].into(), ..by_spec.cluster };
    assert_eq!(down(&shown(&by_spec, &[])), []);
    let mut by_annotation = snapshot.clone();
    by_annotation.pods[1].annotations.insert(annotation::STOPPED.into(), "true".into());
    assert_eq!(down(&shown(&by_annotation, &[])), []);
    let mut by_ledger = snapshot;
    by_ledger.ledger.kept_stopped = vec![KeptStopped {
        pod_uid: "uid-logs-1".into(),
        node: "logs-1".into(),
        sequence: 1,
        releasing: false,
        config: ConfigChoice::Mounted,
        checksum: None,
    }];
    assert_eq!(down(&shown(&by_ledger, &[])), []);
}

#[test]
fn what_is_being_restarted_is_not_down_and_what_is_not_listed_is() {
    let mut moving = under_way();
    manager(&mut moving, 1).state = State::Stopped;
    assert_eq!(down(&shown(&moving, &[])), []);
    // Nobody knows who is in the cluster.
    assert_eq!(shown(&three(), &[]).counts.down, 0);
    let mut alone = three();
    alone.engine = Ok(engine(&["logs-0", "logs-2"], Color::Yellow));
    let message = "its engine is running, but not in the cluster; its log: `kubectl -n search logs \
                   logs-1 -c search --tail=100`";
    assert_eq!(down(&shown(&alone, &[])), [("logs-1", "not_in_cluster", message)]);
}

#[test]
fn a_container_that_ends_again_and_again_hides_its_manager_and_is_down() {
    let mut snapshot = three();
    let silent = || Err(Unknown { message: "no answer".into() });
    (snapshot.pods[0].manager, snapshot.pods[0].crash_looping) = (silent(), true);
    (snapshot.pods[1].manager, snapshot.pods[1].ready) = (silent(), false);
    // It serves: only its manager is not asked.
    snapshot.pods[2].manager = silent();
    let report = shown(&snapshot, &[]);
    let crash = "its container is crash-looping (CrashLoopBackOff): `kubectl -n search logs \
                 logs-0 -c search --previous --tail=100`";
    let silent = "no answer: `kubectl -n search describe pod logs-1`";
    assert_eq!(
        down(&report),
        [("logs-0", "crash_looping", crash), ("logs-1", "manager_unreachable", silent)]
    );
}

#[test] // proves RESTART-112
fn a_pod_that_its_set_does_not_make_is_down_unless_it_is_replaced_or_leaves() {
    let mut snapshot = three();
    snapshot.pods.remove(2);
    snapshot.missing = vec![MissingPod { name: "logs-2".into(), set: "logs".into() }];
    assert!(reads_engine(&snapshot));
    let report = shown(&snapshot, &[]);
    let message = "StatefulSet logs wants its pod, and there is none: `kubectl -n search describe \
                   statefulset logs`";
    assert_eq!(down(&report), [("logs-2", "pod_missing", message)]);
    assert_eq!((report.phase.as_str(), report.counts.down), ("Degraded", 1));
    let sentence = format!("logs-2 is down: {message}");
    assert_eq!(condition(&report, "Degraded"), ("True", "NodesDown", sentence.as_str()));
    assert_eq!(condition(&report, "Available"), ("True", "SomePodsReady", "2 of 3 pods are ready"));
    let standard = ["Ready", "Reconciling", "Stalled"].map(|kind| condition(&report, kind).0);
    assert_eq!(standard, ["False", "True", "False"], "its set tries again by itself");

    let mut replaced = under_way();
    replaced.pods.remove(1);
    replaced.missing = vec![MissingPod { name: "logs-1".into(), set: "logs".into() }];
    assert_eq!(down(&shown(&replaced, &[])), []);
    // Deleted to be replaced, it is made at once, unless that is refused.
    let mut refused = replaced.clone();
    let update = json!({"update": {"from": "a", "to": "b", "step": "replace", "because": []}});
    let member = &mut refused.ledger.restart.as_mut().unwrap().members[1];
    member.update = Some(serde_json::from_value(update).unwrap());
    assert_eq!(down(&shown(&refused, &[])), [("logs-1", "pod_missing", message)]);
    // In one row, where a restart has given it up.
    let members = &mut replaced.ledger.restart.as_mut().unwrap().members;
    members[1].step = MemberStep::Finished;
    assert_eq!(down(&shown(&replaced, &[])).len(), 1);

    let mut leaves = snapshot.clone();
    leaves.ledger.debts.leaving.nodes.insert("logs-2".into());
    assert_eq!(shown(&leaves, &[]).counts.down, 0);
    let mut kept = snapshot;
    kept.cluster.stopped.insert("logs-2".into());
    assert_eq!(shown(&kept, &[]).counts.down, 0);
}

#[test]
fn many_nodes_that_are_down_are_counted_in_one_message() {
    let mut snapshot = failed();
    let like = snapshot.pods[2].manager.clone();
    snapshot.pods = (0..9).map(|n| pod(&format!("logs-{n}"))).collect();
    for pod in &mut snapshot.pods {
        let mut own = like.clone().unwrap();
        own.pod_uid = Some(pod.uid.clone());
        pod.manager = Ok(own);
    }
    let report = shown(&snapshot, &[]);
    assert_eq!((report.counts.down, report.nodes.len()), (9, 9));
    let (_, _, message) = condition(&report, "Degraded");
    assert!(message.ends_with("; 6 more nodes are down"), "{message}");
}

#[test] // proves RESTART-115
fn waiting_for_the_shards_of_the_node_before_is_progress_until_it_takes_too_long() {
    let mut snapshot = under_way();
    let restart = snapshot.ledger.restart.as_mut().unwrap();
    restart.members[1].step = MemberStep::Finished;
    restart.members.iter_mut().for_each(|member| member.since = Time(50_000));
    snapshot.engine = Ok(engine(&["logs-0", "logs-1", "logs-2"], Color::Yellow));
    let waiting = [waits(Some("logs-0"), Code::Predicate(Predicate::Yellow), "not settled yet")];
    let report = shown(&snapshot, &waiting);
    assert_eq!((report.phase.as_str(), report.blocked.as_deref()), ("Restarting", None));
    assert_eq!(condition(&report, "Blocked").0, "False");
    assert!(report.message.unwrap().starts_with("not settled yet; "), "with the time left");
    assert!(report.nodes[0].blocked_by.is_some(), "the rule stays in the table");

    let blocked = |snapshot: &Snapshot| shown(snapshot, &waiting).blocked.is_some();
    let mut late = snapshot.clone();
    late.now = Time(50_000 + Policy::default().phase_timeout);
    assert!(blocked(&late));
    let mut red = snapshot.clone();
    red.engine = Ok(engine(&["logs-0", "logs-1", "logs-2"], Color::Red));
    assert!(blocked(&red));
    let mut first = snapshot;
    first.ledger.restart.as_mut().unwrap().members = vec![member("logs-0", MemberStep::Scheduled)];
    assert!(blocked(&first));
}

/// Every report of a whole restart.
fn reports(nodes: &[(&str, &str)], strategy: crate::Strategy, policy: Policy) -> Vec<Report> {
    let mut driver = Driver::new(World::new(nodes), policy);
    driver.run(2_000, |_| false);
    let request = Request { id: "r1".into(), strategy, ..Request::default() };
    let text = serde_json::to_string(&request).unwrap();
    driver.world.object.touch().annotations.insert(annotation::REQUEST.into(), text);
    let mut seen = Vec::new();
    while driver.world.ledger().history.is_empty() {
        let until = driver.world.now + 60_000;
        driver.pass(until);
        let (snapshot, _) = driver.world.observe(&driver.flushed);
        seen.push(report(&snapshot, &driver.policy, &plan(&snapshot, &driver.policy)));
    }
    assert_eq!(driver.world.ledger().history[0].outcome, crate::Outcome::Done);
    seen
}

#[test] // proves RESTART-115
fn a_restart_that_goes_as_it_should_is_never_blocked_and_no_node_of_it_is_down() {
    let three = [("logs-0", "master+data"), ("logs-1", "master+data"), ("logs-2", "master+data")];
    let outage = || Policy { allow_outage: true, ..Policy::default() };
    for (nodes, strategy, policy) in [
        (&three[..], crate::Strategy::Rolling, Policy::default()),
        (&three[..], crate::Strategy::Coordinated, outage()),
        (&three[..1], crate::Strategy::Rolling, outage()),
    ] {
        for report in reports(nodes, strategy, policy) {
            assert_eq!((report.blocked.as_deref(), report.counts.down), (None, 0), "{report:?}");
        }
    }
}

#[test] // proves RESTART-127
fn a_pod_that_an_operator_replaces_is_not_called_broken() {
    let mut snapshot = three();
    let made_by = |replaces_pods| {
        let (kind, object) = (OperatorKind::Eck, "logs".to_owned());
        Some(Operator { kind, object, replaces_pods })
    };
    let gone = &mut snapshot.pods[2];
    gone.manager = Err(Unknown { message: "cannot reach the manager".into() });
    gone.ready = false;
    gone.operator = made_by(true);
    let describe = "`kubectl -n search describe pod logs-2`";
    let replaces = "ECK replaces the pods of Elasticsearch logs, which restarts their engines; do \
                    nothing unless it is paused";
    let message = format!("{replaces}: {describe}");
    assert_eq!(down(&shown(&snapshot, &[])), [("logs-2", "operator_replaces", message.as_str())]);

    // The same while Kubernetes makes the new pod, but not when something hinders it.
    let not_started = |container: Option<&str>, reason: &str| {
        let container = container.map(str::to_owned);
        Some(NotStarted { container, reason: reason.to_owned(), message: String::new() })
    };
    snapshot.pods[2].not_started = not_started(None, "ContainerCreating");
    let report = shown(&snapshot, &[]);
    let [(_, code, said)] = &down(&report)[..] else { panic!("{report:?}") };
    assert_eq!(*code, "operator_replaces");
    assert!(said.starts_with(replaces), "{said}");
    snapshot.pods[2].not_started = not_started(Some("search"), "ErrImagePull");
    let report = shown(&snapshot, &[]);
    let [(_, code, _)] = &down(&report)[..] else { panic!("{report:?}") };
    assert_eq!(*code, "pod_not_started");
    snapshot.pods[2].not_started = None;

    snapshot.pods[2].operator = made_by(false);
    let message = format!(
        "cannot reach the manager; ECK makes its pod (for Elasticsearch logs) and may just have \
         replaced it: {describe}"
    );
    let report = shown(&snapshot, &[]);
    assert_eq!(down(&report), [("logs-2", "manager_unreachable", message.as_str())]);

    // Nobody is told to restart what the operator restarts.
    let mut drifts = three();
    drifts.pods[1].operator = made_by(true);
    manager(&mut drifts, 2).run.as_mut().unwrap().checksum = Some("older".into());
    let message = shown(&drifts, &[]).message.unwrap();
    assert!(message.ends_with(replaces), "{message}");
    for change in [OnConfigChange::None, OnConfigChange::Rolling] {
        let policy = Policy { on_config_change: change, ..Policy::default() };
        let plan = plan(&drifts, &policy);
        let waits = plan.waiting.iter().find(|waiting| waiting.code == Code::PendingRestart);
        assert!(waits.is_some_and(|waiting| waiting.message.ends_with(replaces)), "{plan:?}");
    }
}
