//! The report, from made-up snapshots of a cluster of three nodes.

mod disabled;
mod down;
mod estimate;
mod person;
mod standard;
mod updates;

use super::{Condition, MAX_NODES, Report, report};
use crate::{
    AllocationBefore, AllocationDebt, Cluster, Code, Color, Ending, Engine, Health, Ledger,
    Manager, Member, MemberStep, OnConfigChange, Outcome, Plan, Pod, Policy, Predicate, Request,
    Restart, Run, Snapshot, Sources, StartDebt, Strategy, Time, Unknown, Waiting,
};
use stayput_api::{ConfigChoice, Desired, State};

const NEW: &str = "sha256:0123456789abcdef0000000000000000000000000000000000000000000000000";
const OLD: &str = "sha256:fedcba98765432100000000000000000000000000000000000000000000000000";

fn pod(name: &str) -> Pod {
    let manager = Manager {
        version: "0.1.0".into(),
        upgraded_from: None,
        pod_uid: Some(format!("uid-{name}")),
        durable: true,
        desired: Desired::Running,
        state: State::Running,
        draining: false,
        ready: Some(true),
        sequence: 0,
        last_request: None,
        run: Some(Run {
            id: "run".into(),
            checksum: Some(NEW.into()),
            config: ConfigChoice::Mounted,
            started: None,
            variables: None,
        }),
        last_exit: None,
        mounted: Some(NEW.into()),
        lagging: None,
        live_mismatch: None,
        ignored_archive: None,
        variables: None,
        clock_ahead: 0,
        ready_since: None,
        last_good: None,
        reason: None,
    };
    Pod {
        uid: format!("uid-{name}"),
        name: name.into(),
        node: name.into(),
        container: Some("search".into()),
        program: None,
        annotations: Default::default(),
        ready: true,
        terminating: false,
        crash_looping: false,
        not_started: None,
        outdated: None,
        deadly_probe: None,
        undeletable: None,
        unchangeable: None,
        unreturnable: None,
        room: Ok(None),
        claim_uids: Ok([].into()),
        leaving: None,
        phase_applied_by: None,
        endpoint: Err(Unknown { message: "not read".into() }),
        operator: None,
        unserved_since: None,
        update: Ok(None),
        ahead: None,
        live: None,
        ignores_change: false,
        config_from: vec![],
        sources: Sources::Checksum(NEW.into()),
        manager: Ok(manager),
    }
}

fn three() -> Snapshot {
    Snapshot {
        configs: crate::KnownConfigs::default(),
        now: Time(100_000),
        fresh_id: String::new(),
        cluster: Cluster { name: "search/logs".into(), has_status: true, ..Cluster::default() },
        ledger: Ledger::default(),
        pods: ["logs-0", "logs-1", "logs-2"].map(pod).into(),
        engine: Err(Unknown { message: "not read".into() }),
        missing: vec![],
        no_master: false,
        jumped: 0,
        node_sets: None,
        flushed: Default::default(),
    }
}

fn member(node: &str, step: MemberStep) -> Member {
    Member {
        pod_uid: format!("uid-{node}"),
        pod: node.into(),
        node: node.into(),
        step,
        stop_sequence: 1,
        start_sequence: 2,
        ..Member::default()
    }
}

/// `logs-2` is done, `logs-1` under way, `logs-0` waits.
fn under_way() -> Snapshot {
    let mut snapshot = three();
    snapshot.ledger.restart = Some(Restart {
        request: Request { id: "r1".into(), strategy: Strategy::Rolling, ..Request::default() },
        started: Time(1_000),
        began: Some(Time(1_000)),
        stuck_since: None,
        direction: Default::default(),
        ending: None,
        once: Default::default(),
        frozen: None,
        members: vec![
            member("logs-0", MemberStep::Scheduled),
            member("logs-1", MemberStep::Restarting),
            member("logs-2", MemberStep::Finished),
        ],
    });
    snapshot
}

fn manager(snapshot: &mut Snapshot, index: usize) -> &mut Manager {
    snapshot.pods[index].manager.as_mut().unwrap()
}

fn waits(pod: Option<&str>, code: Code, message: &str) -> Waiting {
    Waiting {
        pod: pod.map(|name| format!("uid-{name}")),
        node: pod.map(str::to_owned),
        code,
        message: message.to_owned().into(),
    }
}

fn shown(snapshot: &Snapshot, waiting: &[Waiting]) -> Report {
    let plan = Plan { waiting: waiting.to_vec(), ..Plan::default() };
    report(snapshot, &Policy::default(), &plan)
}

fn condition<'a>(report: &'a Report, kind: &str) -> (&'a str, &'a str, &'a str) {
    let found = report.conditions.iter().find(|condition| condition.kind == kind).unwrap();
    (&found.status, &found.reason, &found.message)
}

#[test]
fn at_rest_nothing_is_listed() {
    let idle =
        [0, 1, 2].map(|n| waits(Some(&format!("logs-{n}")), Code::Idle, "nothing was asked"));
    let report = shown(&three(), &idle);
    assert_eq!(report.phase, "Idle");
    assert_eq!(
        (report.progress.as_ref(), report.blocked.as_ref(), &report.message),
        (None, None, &None)
    );
    assert_eq!(report.nodes, []);
    assert_eq!((report.counts.pods, report.counts.ready), (3, 3));
    assert_eq!(condition(&report, "Available"), ("True", "PodsReady", "3 of 3 pods are ready"));
    assert_eq!(condition(&report, "RestartInProgress"), ("False", "NoRestart", ""));
    assert_eq!(condition(&report, "Blocked"), ("False", "NothingBlocks", ""));
    assert_eq!(condition(&report, "Degraded"), ("False", "NothingOwed", ""));
    assert_eq!(condition(&report, "PredicatesDisabled"), ("False", "NothingDisabled", ""));
}

#[test]
fn a_restart_under_way_shows_who_is_where_and_what_is_waited_for() {
    let mut snapshot = under_way();
    snapshot.pods[1].ready = false;
    manager(&mut snapshot, 1).state = State::Stopping;
    manager(&mut snapshot, 1).sequence = 1;
    let report = shown(
        &snapshot,
        &[
            waits(Some("logs-0"), Code::NotItsTurn, "logs-1 comes first"),
            waits(Some("logs-1"), Code::Stopping, "its engine is being stopped"),
            waits(Some("logs-2"), Code::Finished, "done"),
        ],
    );
    assert_eq!(report.phase, "Restarting");
    assert_eq!(report.progress.as_deref(), Some("rolling 1/3"));
    assert_eq!(report.message.as_deref(), Some("its engine is being stopped"));
    assert_eq!((report.counts.restarting, report.counts.scheduled), (1, 1));
    let [first, second] = &report.nodes[..] else { panic!("{:?}", report.nodes) };
    assert_eq!((first.name.as_str(), first.phase.as_deref()), ("logs-1", Some("stop")));
    assert_eq!(first.state.as_deref(), Some("stopping"));
    assert_eq!(first.checksum.as_deref(), Some("0123456789ab"));
    assert_eq!(first.blocked_by, None);
    assert_eq!(
        (second.name.as_str(), second.phase.as_deref()),
        ("logs-0", Some("schedule-rolling"))
    );
    let message = "restart r1: 1 of 3 nodes done";
    assert_eq!(condition(&report, "RestartInProgress"), ("True", "Rolling", message));
    assert_eq!(condition(&report, "Available").1, "SomePodsReady");
}

#[test]
fn while_a_node_is_under_way_only_what_stops_that_node_blocks() {
    let others = waits(Some("logs-0"), Code::Quorum, "a majority would be lost");
    let moving = waits(Some("logs-1"), Code::Joining, "has not joined yet");
    let report_moving = shown(&under_way(), &[others.clone(), moving]);
    assert_eq!((report_moving.phase.as_str(), report_moving.blocked), ("Restarting", None));
    let stuck = waits(Some("logs-1"), Code::ManagerUnreachable, "its manager does not answer");
    let report_stuck = shown(&under_way(), &[others, stuck]);
    assert_eq!(report_stuck.phase, "Blocked");
    assert_eq!(report_stuck.blocked.as_deref(), Some("manager_unreachable"));
}

#[test]
fn a_rule_that_blocks_is_named_with_its_sentence() {
    let mut snapshot = under_way();
    snapshot.ledger.restart.as_mut().unwrap().members[1].step = MemberStep::Finished;
    let quorum = waits(Some("logs-0"), Code::Quorum, "a majority would be lost: start logs-1");
    let report = shown(&snapshot, &[quorum]);
    assert_eq!(report.phase, "Blocked");
    assert_eq!(report.progress.as_deref(), Some("rolling 2/3"));
    let message = "a majority would be lost: start logs-1";
    assert_eq!(condition(&report, "Blocked"), ("True", "quorum", message));
    assert_eq!(report.message.as_deref(), Some(message));
    assert_eq!(report.nodes[0].blocked_by.as_deref(), Some("quorum"));
}

#[test]
fn what_concerns_the_whole_comes_first_and_bad_input_last() {
    let bad = waits(Some("logs-0"), Code::InvalidInput, "is no phase");
    let pod = waits(Some("logs-1"), Code::Predicate(Predicate::GreenOrYellow), "red");
    let whole = waits(None, Code::OverlappingSelectors, "search/other finds logs-0 too");
    let blocked = |waiting: &[Waiting]| shown(&three(), waiting).blocked.unwrap();
    assert_eq!(blocked(&[bad.clone(), pod.clone(), whole]), "overlapping_selectors");
    assert_eq!(blocked(&[bad.clone(), pod]), "only_restart_healthy_node_if_green_or_yellow");
    assert_eq!(blocked(&[bad]), "invalid_input");
}

#[test]
fn the_phase_is_one_word() {
    let paused = [waits(Some("logs-0"), Code::Paused, "spec.paused is set")];
    let mut at_rest = three();
    at_rest.cluster.paused = true;
    assert_eq!(shown(&at_rest, &[]).phase, "Paused");

    let mut stopped_short = under_way();
    let members = &mut stopped_short.ledger.restart.as_mut().unwrap().members;
    members[1].step = MemberStep::Finished;
    assert_eq!(shown(&stopped_short, &paused).phase, "Paused");

    let mut ending = under_way();
    let reason = "cancelled".to_owned();
    ending.ledger.restart.as_mut().unwrap().ending =
        Some(Ending { outcome: Outcome::Aborted, reason });
    let report = shown(&ending, &[]);
    assert_eq!(report.phase, "Aborting");
    let message = "restart r1: 1 of 3 nodes done; it ends as aborted: cancelled";
    assert_eq!(condition(&report, "RestartInProgress").2, message);

    let mut deleting = under_way();
    deleting.cluster.deleting = true;
    assert_eq!(shown(&deleting, &[]).phase, "Deleting");
}

#[test]
fn a_node_on_another_config_is_pending_and_says_what_to_do() {
    let mut snapshot = three();
    manager(&mut snapshot, 2).run.as_mut().unwrap().checksum = Some(OLD.into());
    let pending = waits(Some("logs-2"), Code::PendingRestart, "its config has changed");
    let report = shown(&snapshot, &[pending]);
    assert_eq!((report.phase.as_str(), report.counts.pending_restart), ("PendingRestart", 1));
    assert!(report.message.unwrap().starts_with("1 node runs on another config"));
    assert_eq!(report.nodes[0].name, "logs-2");
    assert_eq!(report.nodes[0].checksum.as_deref(), Some("fedcba987654"));

    let plan = Plan::default();
    let by_itself = Policy { on_config_change: OnConfigChange::Rolling, ..Policy::default() };
    assert_eq!(super::report(&snapshot, &by_itself, &plan).message, None);
}

#[test] // proves UPDATE-30
fn what_is_not_known_is_no_drift() {
    let mut snapshot = three();
    manager(&mut snapshot, 0).run.as_mut().unwrap().checksum = None;
    snapshot.pods[1].sources = Sources::Absent("Secret logs-1-config is absent".into());
    snapshot.pods[2].manager = Err(Unknown { message: "does not answer".into() });
    let report = shown(&snapshot, &[]);
    assert_eq!((report.counts.pending_restart, report.counts.unreachable), (0, 1));
    assert_eq!(report.phase, "Idle");
    assert_eq!(report.source_absent.as_deref(), Some("Secret logs-1-config is absent"));
    snapshot.pods[0].sources = Sources::Absent("Secret logs-0-config is absent".into());
    let told = shown(&snapshot, &[]).source_absent;
    assert_eq!(told.as_deref(), Some("Secret logs-0-config is absent (and 1 more)"));
    for pod in &mut snapshot.pods {
        pod.sources = Sources::Absent("Secret logs is absent".into());
    }
    let told = shown(&snapshot, &[]).source_absent;
    assert_eq!(told.as_deref(), Some("Secret logs is absent (for 3 nodes)"));
}

#[test]
fn debts_degrade_unless_a_node_under_way_is_going_to_pay_them() {
    let debt = AllocationDebt {
        restart: "r1".into(),
        before: AllocationBefore::default(),
        holders: vec!["uid-logs-1".into()],
    };
    let mut held = under_way();
    held.ledger.debts.allocation = Some(debt.clone());
    assert_eq!(condition(&shown(&held, &[]), "Degraded").0, "False");

    let mut due = three();
    due.ledger.debts.allocation = Some(debt);
    due.ledger.debts.start.push(StartDebt {
        pod_uid: "uid-logs-0".into(),
        node: "logs-0".into(),
        stop_sequence: None,
        sequence: 9,
        config: ConfigChoice::LastGood,
        checksum: None,
        absent_since: None,
        since: None,
        update: None,
    });
    let report = shown(&due, &[]);
    assert_eq!(report.phase, "Degraded");
    let message = "the engine of logs-0 must be started; cluster.routing.allocation.enable \
                    must be restored to unset (restart r1)";
    assert_eq!(condition(&report, "Degraded"), ("True", "Debts", message));
    assert_eq!(report.message.as_deref(), Some(message));
}

#[test]
fn the_engines_word_on_availability_beats_that_of_the_pods() {
    let mut snapshot = three();
    let mut available = |color| {
        let health = Health {
            color,
            timed_out: false,
            data_nodes: 3,
            initializing: 0,
            relocating: 0,
            unassigned: 0,
            delayed: 0,
            in_flight_fetch: 0,
        };
        let unknown = || Unknown { message: String::new() };
        snapshot.engine = Ok(Engine {
            version: String::new(),
            cluster_uuid: String::new(),
            nodes: Vec::new(),
            elected_master: None,
            health: Ok(health),
            voting: Err(unknown()),
            shards: Err(unknown()),
            searchable_snapshots: Ok(Default::default()),
            immovable: Default::default(),
            allocation: Err(unknown()),
            records: Err(unknown()),
        });
        let report = shown(&snapshot, &[]);
        let (status, reason, _) = condition(&report, "Available");
        format!("{status} {reason}")
    };
    assert_eq!(available(Color::Green), "True Green");
    assert_eq!(available(Color::Yellow), "True Yellow");
    assert_eq!(available(Color::Red), "False Red");
    assert_eq!(available(Color::Unknown), "True PodsReady");

    let mut unready = three();
    unready.pods.iter_mut().for_each(|pod| pod.ready = false);
    assert_eq!(condition(&shown(&unready, &[]), "Available").1, "NoPodReady");
    unready.pods.clear();
    assert_eq!(condition(&shown(&unready, &[]), "Available").0, "Unknown");
}

#[test]
fn a_hundred_nodes_at_most_the_most_interesting_first_in_the_order_people_count() {
    let mut snapshot = three();
    snapshot.pods = (0..250).map(|n| pod(&format!("logs-{n}"))).collect();
    manager(&mut snapshot, 200).run.as_mut().unwrap().checksum = Some(OLD.into());
    let waiting: Vec<Waiting> = (0..250)
        .map(|n| match n {
            240 => waits(Some("logs-240"), Code::WrongPod, "another pod's manager"),
            n => waits(Some(&format!("logs-{n}")), Code::KeptStopped, "kept stopped"),
        })
        .collect();
    let report = shown(&snapshot, &waiting);
    assert_eq!(report.nodes.len(), MAX_NODES);
    let names: Vec<&str> = report.nodes.iter().map(|node| node.name.as_str()).take(14).collect();
    assert_eq!(names[..4], ["logs-240", "logs-200", "logs-0", "logs-1"]);
    assert_eq!(names[11..], ["logs-9", "logs-10", "logs-11"]);
    snapshot.pods.reverse();
    assert_eq!(shown(&snapshot, &waiting), report);
}

#[test]
fn a_member_whose_pod_is_gone_is_still_listed() {
    let mut snapshot = under_way();
    snapshot.pods.remove(1);
    let report = shown(&snapshot, &[waits(Some("logs-1"), Code::PodGone, "its pod is gone")]);
    assert_eq!(report.nodes[0].name, "logs-1");
    assert_eq!(report.nodes[0].state, None);
    assert_eq!(report.nodes[0].blocked_by.as_deref(), Some("pod_gone"));
}

#[test] // proves RESTART-103
fn conditions_keep_the_time_of_their_last_change() {
    let old = |kind: &str, status: &str| Condition {
        kind: kind.into(),
        status: status.into(),
        reason: String::new(),
        message: String::new(),
        observed_generation: Some(1),
        last_transition_time: Time(7),
    };
    let before = [old("Available", "True"), old("Blocked", "True")];
    let report = shown(&three(), &[]).since(&before, Some(2));
    let time = |kind: &str| {
        let found = report.conditions.iter().find(|condition| condition.kind == kind).unwrap();
        found.last_transition_time.0
    };
    assert_eq!((time("Available"), time("Blocked"), time("Degraded")), (7, 100_000, 100_000));
    assert!(report.conditions.iter().all(|one| one.observed_generation == Some(2)));
}

#[test]
fn a_spec_that_cannot_be_used_is_shown_beside_what_goes_on() {
    let ledger = under_way().ledger;
    let message = "spec.restart.drain: x; spec.pods.selector: y";
    let report = Report::refused("invalid_spec", message.to_owned(), &ledger, Time(5));
    assert_eq!(
        (report.phase.as_str(), report.progress.as_deref()),
        ("Invalid", Some("rolling 1/3"))
    );
    assert_eq!(condition(&report, "Blocked"), ("True", "invalid_spec", message));
    assert_eq!(condition(&report, "Available").0, "Unknown");
    assert_eq!(condition(&report, "RestartInProgress").0, "True");
}

#[test]
fn a_restart_that_can_go_neither_on_nor_back_degrades_and_says_what_to_do() {
    let message =
        "logs-1 is not back: ask with `kubectl stayput -n search restart logs --coordinated`";
    let report = shown(&under_way(), &[waits(Some("logs-1"), Code::Stranded, message)]);
    assert_eq!((report.phase.as_str(), report.blocked.as_deref()), ("Blocked", Some("stranded")));
    assert_eq!(report.message.as_deref(), Some(message));
    assert_eq!(condition(&report, "Blocked"), ("True", "stranded", message));
    assert_eq!(condition(&report, "Degraded"), ("True", "Stranded", message));
}
