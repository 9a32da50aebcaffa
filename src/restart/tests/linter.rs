//! The linter finds faults: a correct plan, changed in one way at a time.

mod messages;
mod stops;
mod updates;

use std::collections::BTreeSet;

use super::driver::Driver;
use super::scenario::play_line;
use super::world::World;
use crate::tests::lint::lint;
use crate::{
    Action, MemberStep, Plan, Policy, ShardCopy, Snapshot, Sources, Unknown, Voting, plan,
};

/// The moment of a rolling restart in which the plan matches.
pub(super) fn moment(is_it: impl Fn(&Plan, &Snapshot) -> bool) -> (Snapshot, Plan) {
    let nodes = ["logs-0", "logs-1", "logs-2"].map(|name| (name, "master+data"));
    moment_of(&nodes, "request rolling r1", is_it)
}

/// As [`moment`], of any cluster and request.
pub(super) fn moment_of(
    nodes: &[(&str, &str)],
    request: &str,
    is_it: impl Fn(&Plan, &Snapshot) -> bool,
) -> (Snapshot, Plan) {
    let mut driver = Driver::new(World::new(nodes), Policy::default());
    play_line(&mut driver, "change config logs-* v2");
    play_line(&mut driver, request);
    play_to(&mut driver, is_it)
}

/// The next plan that matches; it has no faults.
fn play_to(driver: &mut Driver, is_it: impl Fn(&Plan, &Snapshot) -> bool) -> (Snapshot, Plan) {
    for _ in 0..2_000 {
        let (snapshot, _) = driver.world.observe(&driver.flushed.clone());
        let made = plan(&snapshot, &driver.policy);
        if is_it(&made, &snapshot) {
            assert_eq!(lint(&snapshot, &driver.policy, &made), Vec::<String>::new());
            return (snapshot, made);
        }
        // One plan after the other: none is missed.
        driver.pass(driver.world.now + 100);
    }
    panic!("the moment never came");
}

pub(super) fn has(made: &Plan, what: fn(&Action) -> bool) -> bool {
    made.actions.iter().any(what)
}

fn is_stop(action: &Action) -> bool {
    matches!(action, Action::Stop { .. })
}

pub(super) fn is_start(action: &Action) -> bool {
    matches!(action, Action::Start { .. })
}

/// The linter reports this fault.
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
    let member = |snapshot: &mut Snapshot, spoil: &dyn Fn(&mut crate::Member)| {
        let members = &mut snapshot.ledger.restart.as_mut().unwrap().members;
        spoil(members.iter_mut().find(|member| &member.pod_uid == uid).unwrap());
    };
    finds("S6: stop", &spoiled(&|s| s.ledger.restart = None), &made);
    finds("S6: stop", &spoiled(&|s| member(s, &|one| one.stop_sequence += 1)), &made);
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
    finds("leaves the cluster", &spoiled(&|s| s.pods[at].leaving = Some("x".into())), &made);
    finds("killed by a probe", &spoiled(&|s| s.pods[at].deadly_probe = Some("x".into())), &made);
    let unknown = || Unknown { message: "x".into() };
    finds("manager is not known", &spoiled(&|s| s.pods[at].manager = Err(unknown())), &made);
    finds("cannot be asked", &spoiled(&|s| s.engine = Err(unknown())), &made);
    let lost = |name: &str, s: &mut Snapshot| {
        s.engine.as_mut().unwrap().nodes.retain(|node| node.name != name);
    };
    let other = snapshot.pods.iter().find(|pod| &pod.uid != uid).unwrap().name.clone();
    finds("S2: ", &spoiled(&|s| lost(&other, s)), &made);
    let silent = |name: &str, s: &mut Snapshot| {
        let nodes = &mut s.engine.as_mut().unwrap().nodes;
        for node in nodes.iter_mut().filter(|node| node.name == name) {
            node.roles.clear();
            node.roles_unknown = true;
        }
    };
    let hangs = spoiled(&|s| silent(&other, s));
    finds("S2: ", &hangs, &made);
    finds("while 1 nodes hang", &hangs, &made);
    finds(
        "before it has said what it is",
        &spoiled(&|s| silent(&s.pods[at].node.clone(), s)),
        &made,
    );
    finds(
        "S10: ",
        &spoiled(&|s| {
            let copies = s.engine.as_mut().unwrap().shards.as_mut().unwrap();
            let here = |copy: &ShardCopy| copy.node.as_ref() == Some(&snapshot.pods[at].node);
            *copies = copies.to_vec().into_iter().filter(here).collect();
        }),
        &made,
    );
    finds(
        "S1: ",
        &spoiled(&|s| {
            for member in &mut s.ledger.restart.as_mut().unwrap().members {
                member.step = MemberStep::Restarting;
                member.ephemeral_id.get_or_insert("x".into());
            }
        }),
        &made,
    );
    finds(
        "is ending",
        &spoiled(&|s| {
            let outcome = crate::Outcome::Aborted;
            let reason = "cancelled".into();
            s.ledger.restart.as_mut().unwrap().ending = Some(crate::Ending { outcome, reason });
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
    empty.waiting[0].message = "".into();
    finds("without a message", &snapshot, &empty);
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
            restart.members.iter().any(|member| member.step == MemberStep::Finished)
                && restart.members.iter().any(|member| member.step == MemberStep::Restarting)
                && snapshot.engine.as_ref().is_ok_and(|engine| {
                    engine.allocation.as_ref().is_ok_and(|now| now.marker.is_some())
                })
        })
    };
    let (snapshot, _) = moment(under_way);
    let writes = |spoil: &dyn Fn(&mut crate::Ledger)| {
        let mut ledger = snapshot.ledger.clone();
        spoil(&mut ledger);
        Plan { actions: vec![Action::WriteLedger(Box::new(ledger))], ..Plan::default() }
    };
    let restart = |ledger: &mut crate::Ledger, step: MemberStep, to: MemberStep| {
        let members = &mut ledger.restart.as_mut().unwrap().members;
        members.iter_mut().find(|member| member.step == step).unwrap().step = to;
    };
    finds("as it is", &snapshot, &writes(&|_| {}));
    finds("S4: ", &snapshot, &writes(&|l| restart(l, MemberStep::Finished, MemberStep::Scheduled)));
    finds(
        "S3: ",
        &snapshot,
        &writes(&|l| restart(l, MemberStep::Restarting, MemberStep::Finished)),
    );
    finds(
        "S1: ",
        &snapshot,
        &writes(&|l| restart(l, MemberStep::Scheduled, MemberStep::Restarting)),
    );
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
    finds("no marker of ours", &unmarked, &made);
    let mut early = snapshot;
    let members = early.ledger.restart.as_ref().unwrap().members.clone();
    let back = members.iter().find(|member| member.step == MemberStep::Restarting).unwrap();
    early.engine.as_mut().unwrap().nodes.retain(|node| node.name != back.node);
    finds("S7: ", &early, &made);
}

#[test] // proves RESTART-137
fn half_a_zone_is_found() {
    let nodes = [("logs-0", "master+data@b"), ("logs-1", "data@a"), ("logs-2", "ingest@a")];
    let takes_slots = |made: &Plan, _: &Snapshot| {
        has(made, |action| match action {
            Action::WriteLedger(ledger) => ledger
                .restart
                .iter()
                .flat_map(|restart| &restart.members)
                .any(|member| member.step == MemberStep::Restarting),
            _ => false,
        })
    };
    let (snapshot, mut made) = moment_of(&nodes, "request rolling r1 zone a", takes_slots);
    let Some(Action::WriteLedger(ledger)) = made.actions.first_mut() else { panic!("no write") };
    let members = &mut ledger.restart.as_mut().unwrap().members;
    members[1] = snapshot.ledger.restart.as_ref().unwrap().members[1].clone();
    finds("S1: the zone goes and logs-2 stays", &snapshot, &made);
}

#[test]
fn a_slot_of_a_node_that_leaves_is_found() {
    let takes_slot = |made: &Plan, _: &Snapshot| match made.actions.first() {
        Some(Action::WriteLedger(ledger)) => ledger.under_way().next().is_some(),
        Some(_) | None => false,
    };
    let (mut snapshot, made) = moment(takes_slot);
    for pod in &mut snapshot.pods {
        pod.leaving = Some("x".into());
    }
    finds("takes a slot and leaves the cluster", &snapshot, &made);
}

#[test] // proves RESTART-131
fn a_start_of_a_new_pod_without_a_stop_is_found_unless_nothing_may_be_stopped() {
    let nodes = ["logs-0", "logs-1", "logs-2"].map(|name| (name, "master+data"));
    let policy = Policy { allow_outage: true, ..Policy::default() };
    let mut driver = Driver::new(World::new(&nodes), policy);
    for line in [
        "request coordinated r1",
        "run until logs-0 is stopping",
        "cancel r1",
        "run until logs-0 is starting",
        "replace pod logs-1",
    ] {
        play_line(&mut driver, line);
    }
    let starts_new = |made: &Plan, _: &Snapshot| {
        has(made, |action| matches!(action, Action::Start { uid, .. } if uid == "logs-1-uid2"))
    };
    let (snapshot, made) = play_to(&mut driver, starts_new);
    let spoiled = |spoil: &dyn Fn(&mut Snapshot)| {
        let mut spoiled = snapshot.clone();
        spoil(&mut spoiled);
        spoiled
    };
    let goes_on = |s: &mut Snapshot| s.ledger.restart.as_mut().unwrap().ending = None;
    finds("logs-1 is started before its stop was taken", &spoiled(&goes_on), &made);
    let on_another = spoiled(&|s| {
        let pod = s.pods.iter_mut().find(|pod| pod.name == "logs-1").unwrap();
        let run = pod.manager.as_mut().unwrap().run.as_mut().unwrap();
        run.checksum = Some("v0".into());
    });
    finds("logs-1 is started before its stop was taken", &on_another, &made);
}

#[test]
fn a_slot_beyond_the_budget_is_found_unless_the_whole_set_has_failed() {
    let nodes = ["logs-0", "logs-1", "logs-2"].map(|name| (name, "master+data"));
    let mut driver = Driver::new(World::new(&nodes), Policy::default());
    for line in
        ["engine of logs-* refuses v1", "engine of logs-* dies", "run 10s", "request rolling r1"]
    {
        play_line(&mut driver, line);
    }
    let takes_slots = |ledger: &crate::Ledger| {
        let members = ledger.restart.iter().flat_map(|restart| &restart.members);
        members.filter(|member| member.step == MemberStep::Restarting).count() == 3
    };
    let (mut one_serves, made) = play_to(&mut driver, |made, _| match made.actions.first() {
        Some(Action::WriteLedger(ledger)) => takes_slots(ledger),
        _ => false,
    });
    one_serves.pods[1].ready = true;
    finds("S1: 3 nodes hold a slot, 1 may", &one_serves, &made);
}

/// The same of two masters, one of which hands its vote over.
fn moment_of_two(is_it: impl Fn(&Plan, &Snapshot) -> bool) -> (Snapshot, Plan) {
    let nodes = ["logs-0", "logs-1"].map(|name| (name, "master+data"));
    let mut driver = Driver::new(World::new(&nodes), Policy::default());
    play_line(&mut driver, "request rolling r1");
    play_to(&mut driver, is_it)
}

#[test]
fn voting_exclusions_against_the_rules_are_found() {
    let excludes = |action: &Action| matches!(action, Action::ExcludeVoter { .. });
    let (snapshot, made) = moment_of_two(|made, _| has(made, excludes));
    let voting = |spoil: &dyn Fn(&mut BTreeSet<String>, &mut BTreeSet<String>)| {
        let mut spoiled = snapshot.clone();
        let engine = spoiled.engine.as_mut().unwrap();
        if let Ok(Voting::Configurations { committed, excluded, .. }) = &mut engine.voting {
            spoil(committed, excluded);
        }
        spoiled
    };
    let mut unowed = snapshot.clone();
    unowed.ledger.debts.exclusion = None;
    finds("S6: logs-0 is excluded", &unowed, &made);
    finds("not the only vote", &voting(&|voters, _| voters.extend(["id-logs-1".into()])), &made);
    finds("another client", &voting(&|_, excluded| excluded.extend(["old-3".into()])), &made);
    let mut paused = snapshot.clone();
    paused.cluster.paused = true;
    finds("S9: a node is excluded", &paused, &made);

    let (snapshot, made) =
        moment_of_two(|made, _| has(made, |action| *action == Action::ClearVotingExclusions));
    let mut early = snapshot.clone();
    early.engine.as_mut().unwrap().nodes.retain(|node| node.name != "logs-0");
    finds("S7: logs-0 may vote again", &early, &made);
    let mut foreign = snapshot.clone();
    if let Ok(Voting::Configurations { excluded, .. }) =
        &mut foreign.engine.as_mut().unwrap().voting
    {
        excluded.insert("old-3".into());
    }
    finds("another client are removed", &foreign, &made);
    let mut forgotten = snapshot.ledger.clone();
    forgotten.debts.exclusion = None;
    let forgets =
        Plan { actions: vec![Action::WriteLedger(Box::new(forgotten))], ..Plan::default() };
    finds("S8: the exclusion of logs-0 is forgotten", &snapshot, &forgets);
    finds("no entry remembers", &snapshot, &forgets);
}

#[test]
fn a_slot_that_keeps_copies_from_coming_back_is_found() {
    let (snapshot, made) = moment(|made, _| has(made, is_stop));
    let waits = Plan { actions: Vec::new(), ..made };
    let mut lost = snapshot.clone();
    let engine = lost.engine.as_mut().unwrap();
    engine.health.as_mut().unwrap().unassigned = 1;
    let nodes: BTreeSet<String> = snapshot.ledger.under_way().map(|one| one.node.clone()).collect();
    let copies = engine.shards.as_mut().unwrap();
    let under_way = |copy: &ShardCopy| copy.node.as_ref().is_some_and(|one| nodes.contains(one));
    *copies = copies.to_vec().into_iter().filter(under_way).collect();
    finds("L5: ", &lost, &waits);
    let mut paused = snapshot.clone();
    paused.cluster.paused = true;
    finds("keeps its slot while paused", &paused, &waits);
}

#[test]
fn a_slot_given_back_too_early_is_found() {
    let (mut snapshot, made) = moment(|made, _| has(made, is_stop));
    let mut next = snapshot.ledger.clone();
    for (ledger, step) in
        [(&mut snapshot.ledger, MemberStep::GivingBack), (&mut next, MemberStep::Scheduled)]
    {
        let members = &mut ledger.restart.as_mut().unwrap().members;
        members.iter_mut().find(|one| one.step == MemberStep::Restarting).unwrap().step = step;
    }
    let early = Plan { actions: vec![Action::WriteLedger(Box::new(next))], ..made };
    finds("its stop may still arrive", &snapshot, &early);
    finds("with the sequences of its slot", &snapshot, &early);
    finds("waits again and holds allocation", &snapshot, &early);
}

#[test]
fn allocation_that_stays_limited_for_a_node_that_does_not_come_back_is_found() {
    let nodes = ["logs-0", "logs-1", "logs-2"].map(|name| (name, "master+data"));
    let mut driver = Driver::new(World::new(&nodes), Policy::default());
    for line in [
        "change config logs-* v2",
        "engine of logs-2 starts in 60s",
        "request coordinated r1 allow outage",
        "run until logs-0 is starting",
        "run until logs-0 is running",
        "run 1s",
        "engine of logs-2 refuses v2",
        "engine of logs-2 dies",
        "run 13m",
    ] {
        play_line(&mut driver, line);
    }
    let is_restore = |action: &Action| matches!(action, Action::RestoreAllocation { .. });
    let (snapshot, mut made) = play_to(&mut driver, |made, _| has(made, is_restore));
    made.actions.retain(|action| !is_restore(action));
    finds("L5: allocation is limited for", &snapshot, &made);
}
