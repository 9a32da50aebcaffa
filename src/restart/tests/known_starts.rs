//! Which starts are sent while the apiserver does not answer: one ledger and one status of a manager a row.

use super::scenario::moment;
use crate::{
    Action, Change, Compensation, KeptStopped, LastRequest, Ledger, Manager, Member, MemberStep,
    MemberUpdate, PodUpdate, StartDebt, Strategy, UpdateStep, starts_in_ledger,
};
use stayput_api::{
    ConfigChoice::{self, LastGood, Mounted},
    Desired, RequestKind, State,
};

/// A member under way whose manager has stopped its engine: stop 2, start 4.
fn stopped() -> (Ledger, Manager) {
    let (snapshot, _) = moment(&[
        "one node",
        "policy allowOutage",
        "change config logs-0 v2",
        "request rolling r1",
        "run until logs-0 is stopped",
    ]);
    let manager = snapshot.pods[0].manager.clone().expect("it answers");
    assert_eq!((manager.sequence, manager.state), (2, State::Stopped));
    (snapshot.ledger, manager)
}

fn member(ledger: &mut Ledger) -> &mut Member {
    &mut ledger.restart.as_mut().expect("it is under way").members[0]
}

fn back(ledger: &mut Ledger, stop: Option<u64>, start: u64, config: ConfigChoice) {
    let member = member(ledger);
    member.step = MemberStep::Aborting;
    member.compensation = Some(Compensation { stop_sequence: stop, start_sequence: start, config });
}

fn decided(manager: &mut Manager, sequence: u64, kind: RequestKind, accepted: bool) {
    manager.sequence = sequence;
    let by = "stayput-reconciler".to_owned();
    manager.last_request = Some(LastRequest { sequence, kind, accepted, by });
}

/// Our start was accepted, and the engine has ended.
fn failed(manager: &mut Manager) {
    decided(manager, 4, RequestKind::Start, true);
    (manager.state, manager.desired) = (State::Failed, Desired::Running);
}

fn updated(ledger: &mut Ledger) {
    let update = PodUpdate {
        from: "logs-1".into(),
        to: "logs-2".into(),
        step: UpdateStep::Container,
        because: vec![],
        new_container: true,
        data_elsewhere: false,
        settings: None,
        patch: Default::default(),
    };
    member(ledger).update = Some(Box::new(MemberUpdate {
        update,
        container_id: None,
        claims: Default::default(),
        claim_uids: Default::default(),
        heap: None,
        others: Default::default(),
        given_up_id: None,
        given_up: Default::default(),
        stays: Default::default(),
        late_since: None,
        hindered_since: None,
    }));
}

fn given_variables(ledger: &mut Ledger) {
    updated(ledger);
    let update = &mut member(ledger).update.as_mut().expect("it has one").update;
    (update.step, update.new_container) = (UpdateStep::Restart, false);
    update.patch.variables = Some(Change { seen: None, wanted: Some("{}".into()) });
}

fn owes(ledger: &mut Ledger, sequence: u64) {
    let member = ledger.restart.take().expect("it is under way").members.remove(0);
    ledger.debts.start.push(StartDebt {
        pod_uid: member.pod_uid,
        node: member.node,
        stop_sequence: None,
        sequence,
        config: LastGood,
        checksum: None,
        absent_since: None,
        since: None,
        update: None,
    });
}

fn owes_on(ledger: &mut Ledger, checksum: Option<String>) {
    owes(ledger, 9);
    let debt = &mut ledger.debts.start[0];
    (debt.config, debt.checksum) = (Mounted, checksum);
}

fn coordinated(ledger: &mut Ledger, is_frozen: bool) {
    let restart = ledger.restart.as_mut().expect("it is under way");
    restart.request.strategy = Strategy::Coordinated;
    restart.frozen = is_frozen.then_some(crate::Time(1));
}

type Case = fn(&mut Ledger, &mut Manager);
/// Sequence and config of the start, if one is sent.
type Sent = Option<(u64, ConfigChoice)>;

const CASES: &[(&str, Case, Sent)] = &[
    ("its stop is done", |_, _| {}, Some((4, Mounted))),
    ("its stop is not done", |_, is| is.state = State::Stopping, None),
    ("another config is mounted", |_, is| is.mounted = Some("v3".into()), None),
    ("its stop was refused", |_, is| decided(is, 2, RequestKind::Stop, false), None),
    ("its start was decided on", |_, is| decided(is, 4, RequestKind::Start, true), None),
    ("it waits for its turn", |of, _| member(of).step = MemberStep::Scheduled, None),
    ("it gives its slot back", |of, _| member(of).step = MemberStep::GivingBack, None),
    ("its pod is changed first", |of, _| updated(of), None),
    ("its variables are changed first", |of, _| given_variables(of), None),
    (
        "its variables are set back first",
        |of, is| {
            given_variables(of);
            back(of, None, 5, Mounted);
            failed(is);
        },
        None,
    ),
    ("others are not stopped yet", |of, _| coordinated(of, false), None),
    ("all are stopped", |of, _| coordinated(of, true), Some((4, Mounted))),
    ("owed", |of, _| owes(of, 9), Some((9, LastGood))),
    ("owed, and a later request was decided on", |of, _| owes(of, 2), None),
    (
        "owed, and its pod is set back first",
        |of, _| {
            updated(of);
            let update = member(of).update.clone();
            owes(of, 9);
            of.debts.start[0].update = update;
        },
        None,
    ),
    (
        "owed, and kept stopped",
        |of, _| {
            owes(of, 9);
            let StartDebt { pod_uid, node, .. } = of.debts.start[0].clone();
            of.kept_stopped.push(KeptStopped {
                pod_uid,
                node,
                sequence: 2,
                releasing: false,
                config: Mounted,
                checksum: None,
            });
        },
        None,
    ),
    ("owed on what is mounted", |of, is| owes_on(of, is.mounted.clone()), Some((9, Mounted))),
    ("owed on another config", |of, _| owes_on(of, Some("v9".into())), None),
    (
        "owed on what is mounted, and others are stopped without it",
        |of, is| {
            let other = of.restart.clone();
            owes_on(of, is.mounted.clone());
            of.restart = other;
            coordinated(of, true);
            let restart = of.restart.as_mut().expect("it is under way");
            restart.began = Some(crate::Time(1));
            restart.members.clear();
        },
        None,
    ),
    (
        "owed, and it runs",
        |of, is| {
            owes(of, 9);
            is.state = State::Running;
        },
        None,
    ),
    (
        "stopped on the way back",
        |of, is| {
            back(of, Some(5), 6, LastGood);
            decided(is, 5, RequestKind::Stop, true);
        },
        Some((6, LastGood)),
    ),
    (
        "being stopped on the way back",
        |of, is| {
            back(of, Some(5), 6, LastGood);
            decided(is, 5, RequestKind::Stop, true);
            is.state = State::Stopping;
        },
        None,
    ),
    (
        "somebody has started it on the way back",
        |of, is| {
            back(of, Some(5), 6, LastGood);
            decided(is, 5, RequestKind::Start, true);
        },
        None,
    ),
    (
        "not stopped yet on the way back",
        |of, is| {
            back(of, Some(5), 6, LastGood);
            failed(is);
        },
        None,
    ),
    (
        "failed, and the way back is written",
        |of, is| {
            back(of, None, 5, LastGood);
            failed(is);
        },
        Some((5, LastGood)),
    ),
    ("not started in time", |of, _| back(of, None, 5, LastGood), Some((5, LastGood))),
    (
        "coordinated, turned back",
        |of, _| {
            coordinated(of, false);
            back(of, None, 5, LastGood);
        },
        Some((5, LastGood)),
    ),
    ("written for an engine that ran", |of, _| back(of, None, 5, Mounted), None),
    (
        "no config was good before",
        |of, is| {
            back(of, None, 5, Mounted);
            is.last_good = None;
        },
        Some((5, Mounted)),
    ),
    (
        "the last good config is not there any more",
        |of, is| {
            back(of, None, 5, LastGood);
            is.last_good = None;
        },
        None,
    ),
    (
        "somebody else was first on the way back",
        |of, is| {
            back(of, None, 5, LastGood);
            decided(is, 8, RequestKind::Stop, true);
        },
        None,
    ),
    (
        "a person has stopped it before our stop",
        |of, is| {
            back(of, None, 5, LastGood);
            decided(is, 1, RequestKind::Stop, true);
        },
        None,
    ),
    (
        "its pod is set back first",
        |of, _| {
            updated(of);
            back(of, None, 5, LastGood);
        },
        None,
    ),
];

fn sent(ledger: &Ledger, rollback: bool, manager: &Manager) -> Sent {
    let starts = starts_in_ledger(ledger, rollback, |_| Some(manager.clone()), |_| false);
    let starts: Vec<_> = starts
        .iter()
        .map(|action| match action {
            Action::Start { sequence, config, .. } => (*sequence, *config),
            other => panic!("no start: {other:?}"),
        })
        .collect();
    assert!(starts.len() < 2, "{starts:?}");
    starts.first().copied()
}

#[test] // proves RESTART-30, RESTART-44, RESTART-98
fn only_what_the_next_plan_would_send_without_a_write() {
    let (ledger, mut manager) = stopped();
    manager.last_good = Some("v1".into());
    for (name, change, expected) in CASES {
        let (mut ledger, mut manager) = (ledger.clone(), manager.clone());
        change(&mut ledger, &mut manager);
        assert_eq!(sent(&ledger, true, &manager), *expected, "{name}");
        assert!(
            starts_in_ledger(&ledger, true, |_| None, |_| false).is_empty(),
            "{name}: nobody answers"
        );
    }
    let mut owed = ledger.clone();
    owes(&mut owed, 9);
    let stopped = starts_in_ledger(&owed, true, |_| Some(manager.clone()), |_| true);
    assert!(stopped.is_empty(), "a person wants it stopped");
    let (mut without, mut manager) = (ledger, manager);
    back(&mut without, None, 5, Mounted);
    failed(&mut manager);
    assert_eq!(sent(&without, false, &manager), Some((5, Mounted)));
}
