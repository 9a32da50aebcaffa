//! Leaders whose clocks differ.

use super::scenario::moment;
use crate::{Action, Ledger, Policy, RemovedExclusion, Snapshot, Time, plan};

/// How far the clock of the leader before was ahead, in milliseconds.
const AHEAD: u64 = 3_600_000;

fn since(snapshot: &Snapshot) -> Vec<Time> {
    snapshot.ledger.under_way().map(|member| member.since).collect()
}

/// What the next leader writes, whose clock is right.
fn corrected(snapshot: &mut Snapshot, policy: &Policy) -> Ledger {
    snapshot.now = Time(snapshot.now.0 - AHEAD);
    let written = plan(snapshot, policy);
    let Some(Action::WriteLedger(ledger)) = written.actions.first() else { panic!("{written:?}") };
    (**ledger).clone()
}

#[test] // proves RESTART-27
fn what_a_leader_with_a_clock_ahead_has_written_counts_from_now() {
    let (mut snapshot, policy) = moment(&["three nodes", "request rolling r1", "run 2s"]);
    snapshot.ledger = corrected(&mut snapshot, &policy);
    assert_eq!(since(&snapshot), [snapshot.now]);
    let again = plan(&snapshot, &policy);
    assert!(!matches!(again.actions.first(), Some(Action::WriteLedger(_))), "{again:?}");
}

#[test] // proves RESTART-27
fn a_start_that_is_owed_is_waited_for_from_now_on() {
    let (mut snapshot, policy) = moment(&[
        "logs-0:master+data logs-1:master+data logs-2:master+data data-0:data",
        "policy allowOutage",
        "change config * v2",
        "engine of data-0 starts in 60s",
        "request coordinated r1",
        "run until logs-0 is starting",
        "run until logs-0 is running",
        "run 1s",
        "freeze manager data-0",
        "run until restart is over",
    ]);
    assert_eq!(snapshot.ledger.restart, None);
    let ledger = corrected(&mut snapshot, &policy);
    let owed: Vec<Option<Time>> = ledger.debts.start.iter().map(|debt| debt.since).collect();
    assert_eq!(owed, [Some(snapshot.now)]);
    // The restart before it is over since now, and not for the next hour.
    assert!(crate::last_end(&ledger).is_some_and(|end| end <= snapshot.now));
}

#[test] // proves RESTART-27
fn a_restart_that_took_the_place_of_another_one_is_late_after_a_phase() {
    let (mut snapshot, policy) = moment(&[
        "logs-0:master+data logs-1:master+data logs-2:master+data data-0:data",
        "policy allowOutage",
        "change config * v2",
        "engine of logs-2 starts in 60s",
        "request coordinated r1",
        "run until logs-0 is starting",
        "run until logs-0 is running",
        "run 1s",
        "engine of logs-2 refuses v2",
        "engine of logs-2 dies",
        "change config * v3",
        "run 2m",
        "request coordinated r2",
        "run 200ms",
    ]);
    let ledger = corrected(&mut snapshot, &policy);
    let restart = ledger.restart.expect("it is under way");
    assert_eq!((restart.request.id.as_str(), restart.frozen), ("r2", None));
    assert_eq!((restart.started, restart.began), (snapshot.now, Some(snapshot.now)));
}

#[test] // proves RESTART-27
fn each_time_that_is_waited_from_is_corrected() {
    let (mut snapshot, policy) = moment(&["three nodes", "request rolling r1", "run 2s"]);
    let now = snapshot.now;
    snapshot.ledger = corrected(&mut snapshot, &policy);
    let changes: [fn(&mut Ledger, Time); 4] = [
        |ledger, at| ledger.restart.as_mut().unwrap().stuck_since = Some(at),
        |ledger, at| ledger.restart.as_mut().unwrap().members[0].silent_since = Some(at),
        |ledger, at| ledger.still_shown_since = Some(at),
        |ledger, at| {
            ledger.removed_exclusions.push(RemovedExclusion { node: "logs-0".into(), at });
        },
    ];
    for change in changes {
        let (mut ahead, mut right) = (snapshot.clone(), snapshot.ledger.clone());
        change(&mut ahead.ledger, now);
        change(&mut right, snapshot.now);
        let written = plan(&ahead, &policy);
        let Some(Action::WriteLedger(ledger)) = written.actions.first() else {
            panic!("{written:?}")
        };
        assert_eq!(**ledger, right);
    }
}

/// A time server sets the clock 40 minutes ahead while a node is stopped.
#[test] // proves RESTART-27
fn a_clock_that_jumps_forward_aborts_nothing() {
    const JUMP: u64 = 2_400_000;
    let script = ["three nodes", "request rolling r1", "run until logs-2 is stopped"];
    let (mut snapshot, policy) = moment(&script);
    let before = snapshot.ledger.clone();
    snapshot.now = snapshot.now.plus(JUMP);
    let late = plan(&snapshot, &policy);
    assert!(matches!(late.actions.first(), Some(Action::WriteLedger(_))), "it is over time");

    snapshot.jumped = JUMP;
    let written = plan(&snapshot, &policy);
    let Some(Action::WriteLedger(ledger)) = written.actions.first() else { panic!("{written:?}") };
    let (was, is) = (before.restart.unwrap(), ledger.restart.clone().unwrap());
    assert_eq!(is.started, was.started.plus(JUMP));
    for (was, is) in was.members.iter().zip(&is.members) {
        assert_eq!((is.step, is.since), (was.step, was.since.plus(JUMP)));
    }
    (snapshot.ledger, snapshot.jumped) = ((**ledger).clone(), 0);
    let next = plan(&snapshot, &policy);
    assert!(matches!(next.actions.first(), Some(Action::Start { .. })), "{next:?}");
}
