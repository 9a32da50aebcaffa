//! When a set counts as failed: the state of its pods, and which pods may be restarted without a
//! rule.

use std::collections::BTreeSet;

use super::world::World;
use crate::index::Index;
use crate::rules::FailedSets;
use crate::{LastExit, Ledger, Member, MemberStep, Pod, Restart, Snapshot, Unknown};
use stayput_api::{Desired, ExitReason, State};

/// Pods `logs-0`, `logs-1`, … in these states, and an engine that does not answer.
fn snapshot(fates: &str) -> Snapshot {
    let fates: Vec<&str> = fates.split_whitespace().collect();
    let names: Vec<String> = (0..fates.len()).map(|at| format!("logs-{at}")).collect();
    let nodes: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "master")).collect();
    let (mut snapshot, _) = World::new(&nodes).observe(&BTreeSet::new());
    for (pod, fate) in snapshot.pods.iter_mut().zip(fates) {
        fares(pod, fate);
    }
    snapshot.engine = Err(Unknown { message: "no master".into() });
    snapshot
}

fn fares(pod: &mut Pod, fate: &str) {
    pod.ready = fate == "serves";
    let manager = pod.manager.as_mut().expect("a manager that answers");
    let ended = |reason| Some(LastExit { run: "run0".into(), code: Some(78), reason, ended: None });
    (manager.state, manager.last_exit) = match fate {
        "serves" | "unready" => (State::Running, None),
        "recovered" => (State::Running, ended(ExitReason::Exited)),
        "boots" | "silent" | "loops" => (State::Starting, None),
        "restarted" => (State::Starting, ended(ExitReason::Stopped)),
        "vanished" => (State::Starting, ended(ExitReason::EndedWithManager)),
        "killed" => (State::Starting, ended(ExitReason::Killed)),
        "crashed" => (State::Starting, ended(ExitReason::Exited)),
        "oom" => (State::Starting, ended(ExitReason::Oom)),
        "waits" => (State::Backoff, ended(ExitReason::Exited)),
        "failed" => (State::Failed, ended(ExitReason::Exited)),
        "kept" => (State::Stopped, ended(ExitReason::Stopped)),
        other => panic!("no fate: {other}"),
    };
    if fate == "kept" {
        manager.desired = Desired::Stopped;
    }
    if fate == "silent" || fate == "loops" {
        pod.manager = Err(Unknown { message: "no answer".into() });
        pod.crash_looping = fate == "loops";
    }
}

/// The names of the pods that may be restarted without a rule.
fn lost(snapshot: &Snapshot) -> String {
    let view = Index::new(snapshot);
    let sets = FailedSets::of(&view, &snapshot.ledger);
    let lost = snapshot.pods.iter().filter(|pod| sets.whole_set_failed(pod));
    lost.map(|pod| pod.name.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_set_has_failed_when_nobody_of_it_can_serve() {
    for (fates, expected) in [
        ("failed failed failed", "logs-0 logs-1 logs-2"),
        ("waits failed crashed", "logs-0 logs-1 logs-2"),
        ("crashed oom crashed", "logs-0 logs-1 logs-2"),
        ("loops failed loops", "logs-0 logs-1 logs-2"),
        ("failed", "logs-0"),
        // Kept stopped on request: neither failed nor in the way.
        ("failed kept failed", "logs-0 logs-2"),
        ("kept kept kept", ""),
        // A pod may serve.
        ("failed failed serves", ""),
        ("failed failed unready", ""),
        ("failed failed recovered", ""),
        ("failed failed silent", ""),
        // It boots: for the first time, after a stop, or after a KILL that may have been ours.
        ("boots boots boots", ""),
        ("failed failed boots", ""),
        ("restarted failed failed", ""),
        ("killed failed failed", ""),
    ] {
        assert_eq!(lost(&snapshot(fates)), expected, "{fates}");
    }
}

#[test]
fn sets_are_told_apart_by_all_but_the_ordinal() {
    let mut seen = snapshot("failed failed serves failed");
    for (pod, name) in seen.pods.iter_mut().zip(["a-0", "a-1", "b-0", "b2-0"]) {
        name.clone_into(&mut pod.name);
    }
    assert_eq!(lost(&seen), "a-0 a-1 b2-0");
}

#[test]
fn one_that_the_engine_lists_may_serve() {
    let mut seen = snapshot("failed failed failed");
    let nodes = [("logs-0", "master"), ("logs-1", "master"), ("logs-2", "master")];
    let (mut listed, _) = World::new(&nodes).observe(&BTreeSet::new());
    assert!(listed.engine.is_err(), "nothing was asked, so the engine was not read");
    listed.ledger.restart = Some(of(&seen, &[]));
    let mut world = World::new(&nodes);
    world.object.ledger = listed.ledger;
    seen.engine = world.observe(&BTreeSet::new()).0.engine;
    assert!(seen.engine.is_ok());
    assert_eq!(lost(&seen), "");
    seen.engine.as_mut().unwrap().nodes.retain(|node| node.name == "logs-2");
    assert_eq!(lost(&seen), "", "one of them serves");
}

/// A restart of all pods. Those under way hold a slot; each with the process it had when it took it.
fn of(snapshot: &Snapshot, under_way: &[(&str, Option<&str>)]) -> Restart {
    let member = |pod: &Pod| {
        let slot = under_way.iter().find(|(name, _)| *name == pod.name);
        Member {
            pod_uid: pod.uid.clone(),
            pod: pod.name.clone(),
            node: pod.node.clone(),
            step: if slot.is_some() { MemberStep::Restarting } else { MemberStep::Scheduled },
            ephemeral_id: slot.and_then(|(_, process)| process.map(str::to_owned)),
            ..Member::default()
        }
    };
    Restart {
        request: crate::Request::default(),
        started: snapshot.now,
        began: None,
        stuck_since: None,
        direction: crate::Direction::default(),
        ending: None,
        once: crate::Once::default(),
        frozen: None,
        members: snapshot.pods.iter().map(member).collect(),
    }
}

#[test]
fn one_under_way_counts_by_what_it_was_when_its_turn_began() {
    for (slot, fates, expected) in [
        // It was down: it holds a slot because its set has failed.
        (None, "boots failed failed", "logs-1 logs-2"),
        // It served: it is down because of us, and comes back.
        (Some("process"), "boots failed failed", ""),
        // It is up again.
        (None, "unready failed failed", ""),
        (None, "serves failed failed", ""),
    ] {
        let mut seen = snapshot(fates);
        let restart = of(&seen, &[("logs-0", slot)]);
        seen.ledger = Ledger { restart: Some(restart), ..Ledger::default() };
        assert_eq!(lost(&seen), expected, "{slot:?} {fates}");
    }
}
