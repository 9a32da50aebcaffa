//! The linter finds faults where one restart supersedes another one.

use super::scenario;
use crate::tests::lint::lint;
use crate::{
    Action, Direction, Ledger, Member, MemberStep, Outcome, Plan, Policy, Restart, Snapshot, plan,
};

/// The moment in which r2 takes the place of r1.
fn moment() -> (Snapshot, Ledger) {
    let (snapshot, policy) = scenario::moment(&[
        "three nodes",
        "change config logs-* v2",
        "engine of logs-2 starts in 60s",
        "request coordinated r1",
        "run until logs-0 is starting",
        "run until logs-0 is running",
        "run 1s",
        "engine of logs-2 refuses v2",
        "engine of logs-2 dies",
        "change config logs-* v3",
        "run 2m",
        "request coordinated r2",
    ]);
    let made = plan(&snapshot, &policy);
    assert_eq!(lint(&snapshot, &policy, &made), Vec::<String>::new());
    match made.actions.into_iter().next() {
        Some(Action::WriteLedger(ledger)) => (snapshot, *ledger),
        other => panic!("no ledger is written: {other:?}"),
    }
}

fn complaints(snapshot: &Snapshot, ledger: &Ledger) -> Vec<String> {
    let actions = vec![Action::WriteLedger(Box::new(ledger.clone()))];
    lint(snapshot, &Policy::default(), &Plan { actions, ..Plan::default() })
}

#[test]
fn a_restart_that_takes_anothers_place_wrongly_is_found() {
    let (snapshot, ledger) = moment();
    let finds = |complaint: &str, spoil: &dyn Fn(&mut Snapshot, &mut Ledger)| {
        let (mut snapshot, mut ledger) = (snapshot.clone(), ledger.clone());
        spoil(&mut snapshot, &mut ledger);
        let found = complaints(&snapshot, &ledger);
        assert!(found.iter().any(|one| one.contains(complaint)), "{complaint:?} not in {found:#?}");
    };
    fn before(snapshot: &mut Snapshot) -> &mut Restart {
        snapshot.ledger.restart.as_mut().unwrap()
    }
    fn after(ledger: &mut Ledger) -> &mut Restart {
        ledger.restart.as_mut().unwrap()
    }
    fn lost(ledger: &mut Ledger) -> &mut Member {
        after(ledger).members.iter_mut().find(|one| one.node == "logs-2").unwrap()
    }
    finds("which can still turn back", &|s, _| before(s).direction = Direction::Open);
    finds("could turn back to what is gone", &|_, l| after(l).direction = Direction::Open);
    finds("no user requested it", &|s, _| s.cluster.annotations.clear());
    finds("which ends otherwise", &|_, l| {
        l.history.last_mut().unwrap().outcome = Outcome::Aborted;
    });
    finds("which can come to its end", &|s, _| {
        for pod in &mut s.pods {
            pod.manager.as_mut().unwrap().mounted = Some("v2".into());
        }
    });
    finds("its steps already done", &|_, l| after(l).once.flush = true);
    finds("logs-2 is left behind", &|_, l| after(l).members.retain(|one| one.node != "logs-2"));
    finds("S8: r1 is over and logs-0 is left down", &|s, l| {
        s.pods.iter_mut().find(|pod| pod.node == "logs-0").unwrap().manager =
            Err(crate::Unknown { message: "x".into() });
        after(l).members.retain(|one| one.node != "logs-0");
    });
    finds("S8: logs-2 is taken over by r2 and not under way", &|_, l| {
        lost(l).step = MemberStep::Scheduled
    });
    finds("S5: logs-2 is taken over with stop 2", &|_, l| lost(l).stop_sequence = 2);
    finds("S8: allocation is owed and not taken over", &|_, l| l.debts.allocation = None);
    finds("taken over as another debt", &|_, l| {
        l.debts.allocation.as_mut().unwrap().restart = "r2".into();
    });
    finds("allocation is not held for logs-2", &|_, l| {
        l.debts.allocation.as_mut().unwrap().holders.retain(|uid| !uid.contains("logs-2"));
    });
    finds("S11: r2 begins as Forward", &|s, _| s.ledger.restart = None);
    finds("S11: r1 is superseded by no restart", &|_, l| l.restart = None);
}
