//! What a node's turn does not wait for.

use super::lint::{faultless_plan, lint};
use super::linter::{has, is_start, moment, moment_of};
use super::scenario;
use crate::{Action, Color, Drain, Plan, Policy, Snapshot, StartDebt, plan};
use stayput_api::{ConfigChoice, State};

fn is_restored(action: &Action) -> bool {
    matches!(action, Action::RestoreAllocation { .. })
}

/// The moment in which a node has just joined, and its engine is not ready yet.
fn joined() -> Snapshot {
    let (mut snapshot, _) = moment(|made, _| has(made, is_restored));
    let under_way = snapshot.ledger.under_way().next().expect("a member").pod_uid.clone();
    let pod = snapshot.pods.iter_mut().find(|pod| pod.uid == under_way).expect("its pod");
    let manager = pod.manager.as_mut().expect("it answers");
    (manager.state, manager.ready) = (State::Starting, Some(false));
    snapshot
}

#[test] // proves RESTART-86
fn shards_come_back_while_the_engine_becomes_ready() {
    let mut snapshot = joined();
    let policy = Policy::default();
    let made = faultless_plan(&snapshot, &policy);
    assert!(has(&made, is_restored), "{made:#?}");
    // Once they may: it still holds its slot.
    let engine = snapshot.engine.as_mut().expect("it answers");
    let allocation = engine.allocation.as_mut().expect("known");
    let before = allocation.marker.take().expect("ours").before;
    allocation.setting = before;
    let made = faultless_plan(&snapshot, &policy);
    let waits = |made: &Plan| made.waiting.iter().any(|wait| wait.code.as_str() == "not_ready");
    assert!(waits(&made) && !has(&made, |action| matches!(action, Action::WriteLedger(_))));
}

#[test] // proves RESTART-86
fn they_do_not_before_it_has_joined() {
    let (mut snapshot, made) = moment(|made, _| has(made, is_restored));
    let node = snapshot.ledger.under_way().next().expect("a member").node.clone();
    let engine = snapshot.engine.as_mut().expect("it answers");
    engine.nodes.retain(|listed| listed.name != node);
    let again = faultless_plan(&snapshot, &Policy::default());
    assert!(!has(&again, is_restored), "{again:#?}");
    // The linter finds it.
    let found = lint(&snapshot, &Policy::default(), &made);
    assert!(found.iter().any(|line| line.contains("S7: allocation is restored")), "{found:#?}");
}

#[test] // proves RESTART-84
fn a_start_does_not_wait_until_the_old_process_is_off_the_list() {
    let (mut snapshot, _) = moment(|made, _| has(made, is_start));
    let member = snapshot.ledger.under_way().next().expect("a member").clone();
    let engine = snapshot.engine.as_mut().expect("it answers");
    let mut old = engine.nodes[0].clone();
    old.name = member.node.clone();
    old.id = member.node_id.expect("it was listed");
    old.ephemeral_id = member.ephemeral_id.expect("it was listed");
    engine.nodes.push(old);
    let made = faultless_plan(&snapshot, &Policy::default());
    assert!(has(&made, is_start), "{made:#?}");
}

#[test] // proves RESTART-84
fn allocation_is_limited_and_indices_flushed_at_the_same_time() {
    let is_tightened = |action: &Action| matches!(action, Action::TightenAllocation { .. });
    let (_, made) = moment(|made, _| has(made, is_tightened));
    assert!(has(&made, |action| matches!(action, Action::Flush { .. })), "{made:#?}");
}

#[test] // proves RESTART-84
fn no_flush_waits_for_a_primary_that_is_missing() {
    let is_flush = |action: &Action| matches!(action, Action::Flush { .. });
    let (mut snapshot, flushes) = moment(|made, _| has(made, is_flush));
    becomes_red_and_goes_on(&mut snapshot);
    let policy = Policy { drain: Drain::Auto, ..Policy::default() };
    let made = faultless_plan(&snapshot, &policy);
    assert!(!has(&made, is_flush), "{made:#?}");
    // It is prepared all the same.
    assert!(has(&made, |action| matches!(action, Action::TightenAllocation { .. })), "{made:#?}");
    assert!(has(&made, |action| matches!(action, Action::Drain { .. })), "{made:#?}");
    // The linter finds it.
    let found = lint(&snapshot, &policy, &flushes);
    assert!(found.iter().any(|line| line.contains("a missing primary")), "{found:#?}");
}

/// A person lets it go although a primary is missing.
fn becomes_red_and_goes_on(snapshot: &mut Snapshot) {
    let engine = snapshot.engine.as_mut().expect("it answers");
    engine.health.as_mut().expect("known").color = Color::Red;
    let restart = snapshot.ledger.restart.as_mut().expect("one is under way");
    restart.request.skip_rules.push("only_restart_healthy_node_if_green_or_yellow".into());
}

#[test] // proves RESTART-84
fn a_zone_is_stopped_without_the_flush_that_a_red_cluster_does_not_get() {
    let nodes = [("logs-0", "master+data@b"), ("logs-1", "data@a"), ("logs-2", "ingest@a")];
    let is_stop = |action: &Action| matches!(action, Action::Stop { .. });
    let (mut snapshot, _) =
        moment_of(&nodes, "request rolling r1 zone a", |made, _| has(made, is_stop));
    snapshot.flushed.clear();
    let made = faultless_plan(&snapshot, &Policy::default());
    assert!(!has(&made, is_stop), "they are flushed first: {made:#?}");
    becomes_red_and_goes_on(&mut snapshot);
    let made = faultless_plan(&snapshot, &Policy::default());
    assert!(has(&made, is_stop), "{made:#?}");
}

/// Carries out what plans write to the ledger, at this time; the nodes that have a slot then.
fn slots_at(snapshot: &mut Snapshot, policy: &Policy) -> Vec<String> {
    for _ in 0..5 {
        for action in plan(snapshot, policy).actions {
            match action {
                Action::WriteLedger(ledger) => snapshot.ledger = *ledger,
                Action::AddFinalizer => snapshot.cluster.finalizer = true,
                _ => {}
            }
        }
    }
    snapshot.ledger.under_way().map(|member| member.node.clone()).collect()
}

#[test] // proves RESTART-97
fn a_start_that_an_earlier_version_owes_is_not_waited_for_without_end() {
    let (mut snapshot, policy) = scenario::moment(&[
        "logs-0:master+data logs-1:master+data logs-2:master+data data-0:data data-1:data",
        "policy maxUnavailable 2",
        "run 5s",
        "controller off",
        "request rolling r1 nodes data-0",
    ]);
    let pod = snapshot.pods.iter_mut().find(|pod| pod.node == "data-1").expect("a pod");
    let manager = pod.manager.as_mut().expect("it answers");
    manager.state = State::Stuck;
    snapshot.ledger.debts.start.push(StartDebt {
        pod_uid: pod.uid.clone(),
        node: "data-1".into(),
        stop_sequence: None,
        sequence: manager.sequence + 6,
        config: ConfigChoice::Mounted,
        checksum: None,
        absent_since: None,
        since: None,
        update: None,
    });
    // While nothing is stopped, nobody waits for it, and the apiserver may drop what it does not know.
    snapshot.cluster.paused = true;
    assert_eq!(slots_at(&mut snapshot, &policy), Vec::<String>::new());
    assert_eq!(snapshot.ledger.debts.start[0].since, None);
    snapshot.cluster.paused = false;
    assert_eq!(slots_at(&mut snapshot, &policy), Vec::<String>::new());
    assert_eq!(snapshot.ledger.debts.start[0].since, Some(snapshot.now));
    snapshot.now = snapshot.now.plus(policy.phase_timeout);
    assert_eq!(slots_at(&mut snapshot, &policy), ["data-0"]);
}
