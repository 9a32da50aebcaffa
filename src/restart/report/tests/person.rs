//! A node that is down and that nobody but a person starts again.

use super::standard::standard;
use super::{condition, manager, shown, three, under_way, waits};
use crate::{
    AllocationBefore, AllocationDebt, Code, MemberStep, Request, Snapshot, StartDebt, Target,
    Unknown,
};
use stayput_api::{ConfigChoice, Desired, State};

/// A cluster whose `logs-1` is in this state, as requested.
fn with_one_in(state: State, desired: Desired) -> Snapshot {
    let mut snapshot = three();
    let one = manager(&mut snapshot, 1);
    (one.state, one.desired) = (state, desired);
    snapshot
}

const A_PERSON: [(&str, &str); 3] =
    [("False", "NodesDown"), ("False", "Stalled"), ("True", "NodesDown")];
const BY_ITSELF: [(&str, &str); 3] =
    [("False", "NodesDown"), ("True", "NodesDown"), ("False", "Reconciling")];

#[test] // proves RESTART-101
fn a_node_that_nobody_starts_again_waits_for_a_person() {
    let failed = || with_one_in(State::Failed, Desired::Running);
    for (snapshot, expected) in [
        (failed(), A_PERSON),
        (with_one_in(State::Stuck, Desired::Running), A_PERSON),
        (with_one_in(State::Stopped, Desired::Stopped), A_PERSON),
        // About to be started by its manager.
        (with_one_in(State::Stopped, Desired::Running), BY_ITSELF),
        (with_one_in(State::Backoff, Desired::Running), BY_ITSELF),
    ] {
        let state = snapshot.pods[1].manager.as_ref().unwrap().state;
        assert_eq!(standard(&shown(&snapshot, &[])), expected, "{state:?}");
    }
    let mut silent = three();
    silent.pods[1].manager = Err(Unknown { message: "no answer".into() });
    (silent.pods[1].crash_looping, silent.pods[1].ready) = (true, false);
    assert_eq!(standard(&shown(&silent, &[])), BY_ITSELF);
    // One that comes back by itself beside it changes nothing.
    manager(&mut silent, 2).state = State::Failed;
    assert_eq!(standard(&shown(&silent, &[])), A_PERSON);
}

#[test] // proves RESTART-101
fn a_person_is_not_waited_for_while_a_restart_or_a_start_is_to_come() {
    let failed = || with_one_in(State::Failed, Desired::Running);
    let mut moving = failed();
    moving.ledger.restart = under_way().ledger.restart;
    moving.ledger.restart.as_mut().unwrap().members[1].step = MemberStep::Scheduled;
    assert_eq!(standard(&shown(&moving, &[]))[1].0, "True");
    let mut queued = failed();
    queued.ledger.queued = Some(Request { id: "r2".into(), ..Request::default() });
    assert_eq!(standard(&shown(&queued, &[])), BY_ITSELF);
    let mut owed = failed();
    owed.ledger.debts.start.push(StartDebt {
        pod_uid: "uid-logs-1".into(),
        node: "logs-1".into(),
        stop_sequence: None,
        sequence: 9,
        config: ConfigChoice::LastGood,
        checksum: None,
        absent_since: None,
        since: None,
        update: None,
    });
    assert_eq!(standard(&shown(&owed, &[]))[1], ("True", "Debts"));
}

#[test] // proves RESTART-101
fn a_person_is_waited_for_if_the_restart_is_for_other_nodes() {
    let failed = || with_one_in(State::Failed, Desired::Running);
    let mut others = failed();
    others.ledger.restart = under_way().ledger.restart;
    others.ledger.restart.as_mut().unwrap().members.remove(1);
    assert_eq!(standard(&shown(&others, &[])), A_PERSON);
    // Its part in it is over.
    let mut over = failed();
    over.ledger.restart = under_way().ledger.restart;
    over.ledger.restart.as_mut().unwrap().members[1].step = MemberStep::Finished;
    assert_eq!(standard(&shown(&over, &[])), A_PERSON);
    let queued_for = |node: &str| {
        let mut snapshot = failed();
        let target = Target { nodes: vec![node.to_owned()], ..Target::default() };
        snapshot.ledger.queued = Some(Request { target, ..Request::default() });
        shown(&snapshot, &[])
    };
    assert_eq!(standard(&queued_for("logs-0")), A_PERSON);
    assert_eq!(standard(&queued_for("logs-1")), BY_ITSELF);
}

#[test]
fn what_a_person_has_to_do_is_told_before_what_passes_by_itself() {
    let quorum = [waits(Some("logs-0"), Code::Quorum, "two of three")];
    let failed = with_one_in(State::Failed, Desired::Running);
    let report = shown(&failed, &quorum);
    assert_eq!(standard(&report), A_PERSON);
    assert!(condition(&report, "Stalled").2.starts_with("logs-1 is down: "));
    let two = [waits(None, Code::OverlappingSelectors, "search/other finds logs-0 too")];
    assert_eq!(standard(&shown(&failed, &two))[2], ("True", "overlapping_selectors"));
}

#[test]
fn what_is_owed_besides_is_not_what_a_person_has_to_do() {
    let mut snapshot = with_one_in(State::Failed, Desired::Running);
    snapshot.ledger.debts.allocation = Some(AllocationDebt {
        restart: "r1".into(),
        before: AllocationBefore::default(),
        holders: vec![],
    });
    let report = shown(&snapshot, &[]);
    assert_eq!(condition(&report, "Degraded").1, "Debts");
    assert_eq!(standard(&report), A_PERSON);
    assert!(!condition(&report, "Stalled").2.contains("allocation"), "{report:#?}");
}
