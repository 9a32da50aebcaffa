//! An engine that its manager has started by itself, because our start did not come, and whose manager still
//! does not take that start.

use super::scenario::moment;
use crate::{Action, Ledger, MemberStep, Policy, Snapshot, plan};

/// The ledger that the next plan writes, if it changes.
fn written(snapshot: &Snapshot, policy: &Policy) -> Option<Ledger> {
    plan(snapshot, policy).actions.into_iter().find_map(|action| match action {
        Action::WriteLedger(ledger) => Some(*ledger),
        _ => None,
    })
}

/// Seen for the first time long after its stop.
fn resumed() -> (Snapshot, Policy) {
    moment(&[
        "one node",
        "policy allowOutage",
        "request rolling r1",
        "run until logs-0 is stopping",
        "controller off",
        "run 30m",
    ])
}

fn goes_on_for_one_phase_and_is_brought_back(mut snapshot: Snapshot, policy: &Policy) {
    let first = snapshot.now;
    let ledger = written(&snapshot, policy).expect("its time begins when it is seen");
    let member = ledger.members().next().expect("it is under way");
    assert_eq!((member.step, member.since), (MemberStep::Restarting, first));
    snapshot.ledger = ledger;
    let starts = |snapshot: &Snapshot| {
        let made = plan(snapshot, policy);
        made.actions.iter().any(|action| matches!(action, Action::Start { .. }))
    };
    assert!(starts(&snapshot));
    snapshot.now = first.plus(policy.phase_timeout - 1);
    assert!(starts(&snapshot), "asked again while there is time");
    snapshot.now = first.plus(policy.phase_timeout);
    let ledger = written(&snapshot, policy).expect("its time is over");
    let member = ledger.members().next().expect("it is brought back");
    assert_eq!(member.step, MemberStep::Aborting);
}

#[test]
fn a_start_that_is_not_taken_is_given_up_after_a_phase() {
    let (snapshot, policy) = resumed();
    assert!(snapshot.pods[0].manager.as_ref().is_ok_and(|manager| manager.is_ready()));
    goes_on_for_one_phase_and_is_brought_back(snapshot, &policy);
}

#[test]
fn so_is_that_of_an_engine_that_does_not_become_ready() {
    let (mut snapshot, policy) = resumed();
    let manager = snapshot.pods[0].manager.as_mut().expect("it answers");
    (manager.ready, manager.ready_since) = (Some(false), None);
    // Its clock is one hour behind ours.
    manager.clock_ahead = -3600;
    let exit = manager.last_exit.as_mut().expect("our stop has ended its engine");
    exit.ended = exit.ended.map(|at| crate::Time(at.0 - 3_600_000));
    goes_on_for_one_phase_and_is_brought_back(snapshot, &policy);
}
