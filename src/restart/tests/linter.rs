//! The linter finds what it is there for: a good moment, spoiled in one way at a time.

use super::driver::Driver;
use super::scenario::play_line;
use super::world::World;
use crate::restart::lint::lint;
use crate::restart::{Action, Plan, Policy, Snapshot, Sources, Step, Unknown, plan};

/// The moment of a rolling restart in which the plan begins so.
fn moment(is_it: impl Fn(&Plan, &Snapshot) -> bool) -> (Snapshot, Plan) {
    let nodes = ["logs-0", "logs-1", "logs-2"].map(|name| (name, "master+data"));
    let mut driver = Driver::new(World::new(&nodes), Policy::default());
    play_line(&mut driver, "change config logs-* v2");
    play_line(&mut driver, "request rolling r1");
    for _ in 0..2_000 {
        let (snapshot, _) = driver.world.observe(&driver.flushed.clone());
        let made = plan(&snapshot, &driver.policy);
        if is_it(&made, &snapshot) {
            assert_eq!(lint(&snapshot, &driver.policy, &made), Vec::<String>::new());
            return (snapshot, made);
        }
        driver.run(100, |_| false);
    }
    panic!("the moment never came");
}

fn has(made: &Plan, what: fn(&Action) -> bool) -> bool {
    made.actions.iter().any(what)
}

fn is_stop(action: &Action) -> bool {
    matches!(action, Action::Stop { .. })
}

fn is_start(action: &Action) -> bool {
    matches!(action, Action::Start { .. })
}

/// The linter complains so about the spoiled moment.
#[track_caller]
fn finds(complaint: &str, snapshot: &Snapshot, made: &Plan) {
    let found = lint(snapshot, &Policy::default(), made);
    assert!(found.iter().any(|line| line.contains(complaint)), "{complaint:?} not in {found:#?}");
}

#[test]
fn a_stop_against_the_rules_is_found() {
    let (snapshot, made) = moment(|made, _| has(made, is_stop));
    let Some(Action::Stop { uid, .. }) = made.actions.iter().find(|action| is_stop(action)) else {
        panic!("no stop")
    };
    let at = snapshot.pods.iter().position(|pod| &pod.uid == uid).unwrap();
    let spoiled = |spoil: &dyn Fn(&mut Snapshot)| {
        let mut spoiled = snapshot.clone();
        spoil(&mut spoiled);
        spoiled
    };
    let member = |snapshot: &mut Snapshot, spoil: &dyn Fn(&mut crate::restart::Member)| {
        let members = &mut snapshot.ledger.restart.as_mut().unwrap().members;
        spoil(members.iter_mut().find(|member| &member.pod_uid == uid).unwrap());
    };
    finds("S6: stop", &spoiled(&|s| s.ledger.restart = None), &made);
    finds("S6: stop", &spoiled(&|s| member(s, &|one| one.stop += 1)), &made);
    finds("S9: while paused", &spoiled(&|s| s.cluster.paused = true), &made);
    let overlap = spoiled(&|s| s.cluster.overlaps.push("b".into()));
    finds("another SearchCluster", &overlap, &made);
    finds("S3: ", &spoiled(&|s| member(s, &|one| one.expected = Some("v9".into()))), &made);
    let moved = spoiled(&|s| s.pods[at].sources = Sources::Checksum("v9".into()));
    finds("before its config is mounted", &moved, &made);
    finds(
        "a source is absent",
        &spoiled(&|s| s.pods[at].sources = Sources::Absent("x".into())),
        &made,
    );
    finds("will be replaced", &spoiled(&|s| s.pods[at].outdated = Some("x".into())), &made);
    finds("killed by a probe", &spoiled(&|s| s.pods[at].deadly_probe = Some("x".into())), &made);
    let unknown = || Unknown { sentence: "x".into() };
    finds("manager is not known", &spoiled(&|s| s.pods[at].manager = Err(unknown())), &made);
    finds("cannot be asked", &spoiled(&|s| s.engine = Err(unknown())), &made);
    let lost = |name: &str, s: &mut Snapshot| {
        s.engine.as_mut().unwrap().nodes.retain(|node| node.name != name);
    };
    let other = snapshot.pods.iter().find(|pod| &pod.uid != uid).unwrap().name.clone();
    finds("S2: ", &spoiled(&|s| lost(&other, s)), &made);
    finds(
        "S10: ",
        &spoiled(&|s| {
            let copies = s.engine.as_mut().unwrap().shards.as_mut().unwrap();
            copies.retain(|copy| copy.node.as_ref() == Some(&snapshot.pods[at].node));
        }),
        &made,
    );
    finds(
        "S1: ",
        &spoiled(&|s| {
            for member in &mut s.ledger.restart.as_mut().unwrap().members {
                member.step = Step::Restarting;
            }
        }),
        &made,
    );
    finds(
        "is ending",
        &spoiled(&|s| {
            let outcome = crate::restart::Outcome::Aborted;
            let reason = "cancelled".into();
            s.ledger.restart.as_mut().unwrap().ending =
                Some(crate::restart::Ending { outcome, reason });
        }),
        &made,
    );
}

#[test]
fn a_start_on_something_else_is_found() {
    let (snapshot, made) = moment(|made, _| has(made, is_start));
    let mut other = made.clone();
    for action in &mut other.actions {
        if let Action::Start { checksum, .. } = action {
            *checksum = Some("v9".into());
        }
    }
    finds("S3: ", &snapshot, &other);
    for action in &mut other.actions {
        if let Action::Start { sequence, .. } = action {
            *sequence += 1;
        }
    }
    finds("S6: start", &snapshot, &other);
}

#[test]
fn a_plan_that_leaves_a_pod_without_a_word_is_found() {
    let (snapshot, made) =
        moment(|made, snapshot| made.actions.is_empty() && snapshot.ledger.restart.is_some());
    let mut silent = made.clone();
    silent.waiting.clear();
    finds("neither acted on nor waiting", &snapshot, &silent);
    let mut twice = made.clone();
    twice.waiting.extend(made.waiting.iter().cloned());
    finds("waits 2 times", &snapshot, &twice);
    let mut empty = made.clone();
    empty.waiting[0].sentence.clear();
    finds("without a sentence", &snapshot, &empty);
    let mut hot = made;
    hot.actions.clear();
    hot.requeue_after = 0;
    finds("requeue_after is 0", &snapshot, &hot);
}

#[test]
fn a_ledger_that_goes_back_is_found() {
    let under_way = |_: &Plan, snapshot: &Snapshot| {
        let restart = snapshot.ledger.restart.as_ref();
        restart.is_some_and(|restart| {
            restart.members.iter().any(|member| member.step == Step::Finished)
                && restart.members.iter().any(|member| member.step == Step::Restarting)
                && snapshot.engine.as_ref().is_ok_and(|engine| {
                    engine.allocation.as_ref().is_ok_and(|now| now.marker.is_some())
                })
        })
    };
    let (snapshot, _) = moment(under_way);
    let writes = |spoil: &dyn Fn(&mut crate::restart::Ledger)| {
        let mut ledger = snapshot.ledger.clone();
        spoil(&mut ledger);
        Plan { actions: vec![Action::WriteLedger(Box::new(ledger))], ..Plan::default() }
    };
    let restart = |ledger: &mut crate::restart::Ledger, step: Step, to: Step| {
        let members = &mut ledger.restart.as_mut().unwrap().members;
        members.iter_mut().find(|member| member.step == step).unwrap().step = to;
    };
    finds("as it is", &snapshot, &writes(&|_| {}));
    finds("S4: ", &snapshot, &writes(&|l| restart(l, Step::Finished, Step::Scheduled)));
    finds("S3: ", &snapshot, &writes(&|l| restart(l, Step::Restarting, Step::Finished)));
    finds("S1: ", &snapshot, &writes(&|l| restart(l, Step::Scheduled, Step::Restarting)));
    finds("allocation owed is forgotten", &snapshot, &writes(&|l| l.debts.allocation = None));
    finds("in no history", &snapshot, &writes(&|l| l.restart = None));
    finds("taken up is forgotten", &snapshot, &writes(&|l| l.handled.clear()));
    finds("uuid", &snapshot, &writes(&|l| l.cluster_uuid = Some("b".into())));
    let mut beside = writes(&|l| l.handled.push("x".into()));
    beside.actions.push(Action::Flush { node: "logs-0".into() });
    finds("same plan as a ledger write", &snapshot, &beside);
}

#[test]
fn calls_to_the_engine_that_are_not_owed_are_found() {
    let (snapshot, made) =
        moment(|made, _| has(made, |action| matches!(action, Action::TightenAllocation { .. })));
    let mut unowed = snapshot.clone();
    unowed.ledger.debts.allocation = None;
    finds("S6: allocation", &unowed, &made);
    let (snapshot, made) =
        moment(|made, _| has(made, |action| matches!(action, Action::RestoreAllocation { .. })));
    let mut unmarked = snapshot.clone();
    unmarked.engine.as_mut().unwrap().allocation.as_mut().unwrap().marker = None;
    finds("no mark of ours", &unmarked, &made);
    let mut early = snapshot;
    let members = early.ledger.restart.as_ref().unwrap().members.clone();
    let back = members.iter().find(|member| member.step == Step::Restarting).unwrap();
    early.engine.as_mut().unwrap().nodes.retain(|node| node.name != back.node);
    finds("S7: ", &early, &made);
}
