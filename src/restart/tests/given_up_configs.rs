//! A changed config that was given up is not rolled out again by itself, whatever else changes.

use super::scenario::moment;
use crate::{Action, Outcome, Plan, Policy, Snapshot, Sources, plan};

/// v2 was refused by the first engine; the other two were left as they are.
fn given_up() -> (Snapshot, Policy) {
    moment(&[
        "three nodes",
        "policy onConfigChange rolling",
        "engine of logs-* refuses v2",
        "change config logs-* v2",
        "run until restart begins",
        "run until restart is over",
        "run 2m",
    ])
}

/// The nodes of the restart that a plan begins.
fn begun(snapshot: &Snapshot, policy: &Policy) -> Vec<String> {
    let made: Plan = plan(snapshot, policy);
    let mut restarts = made.actions.iter().filter_map(|action| match action {
        Action::WriteLedger(ledger) => ledger.restart.as_ref(),
        _ => None,
    });
    restarts.next().map(|restart| restart.request.target.nodes.clone()).unwrap_or_default()
}

#[test] // proves RESTART-135
fn a_node_that_comes_goes_or_cannot_be_read_is_no_other_change() {
    let (snapshot, policy) = given_up();
    let outcomes: Vec<Outcome> =
        snapshot.ledger.history.iter().map(|entry| entry.outcome).collect();
    assert_eq!(outcomes, [Outcome::RolledBack]);
    assert_eq!(begun(&snapshot, &policy), [] as [&str; 0]);

    let mut gone = snapshot.clone();
    gone.pods.retain(|pod| pod.node != "logs-2");
    assert_eq!(begun(&gone, &policy), [] as [&str; 0], "a pod is deleted");

    let mut unread = snapshot.clone();
    unread.pods[0].sources = Sources::Absent("cannot read Secret logs-0-config".into());
    assert_eq!(begun(&unread, &policy), [] as [&str; 0], "one source is not read");

    let mut more = snapshot.clone();
    let mut new = more.pods[0].clone();
    (new.uid, new.name, new.node) = ("uid-of-3".into(), "logs-3".into(), "logs-3".into());
    let manager = new.manager.as_mut().expect("it answers");
    manager.pod_uid = Some(new.uid.clone());
    manager.run.as_mut().expect("it runs").checksum = Some("v3".into());
    new.sources = Sources::Checksum("v3".into());
    more.pods.push(new);
    assert_eq!(begun(&more, &policy), [] as [&str; 0], "a node comes with a config of its own");
}

#[test] // proves RESTART-135
fn a_node_whose_config_is_really_another_one_is_restarted_alone() {
    let (mut snapshot, policy) = given_up();
    let pod = snapshot.pods.iter_mut().find(|pod| pod.node == "logs-1").expect("it is there");
    pod.sources = Sources::Checksum("v3".into());
    assert_eq!(begun(&snapshot, &policy), ["logs-1"]);
}

#[test] // proves RESTART-135
fn what_an_earlier_version_has_given_up_is_known_by_its_id() {
    let (mut snapshot, policy) = given_up();
    snapshot.ledger.tried_configs = None;
    assert_eq!(begun(&snapshot, &policy), [] as [&str; 0]);
}

#[test] // proves RESTART-135
fn a_config_that_could_not_be_read_then_counts_as_given_up_with_the_others() {
    let (snapshot, _) = moment(&[
        "three nodes",
        "policy onConfigChange rolling",
        "engine of logs-* refuses v2",
        "remove source of logs-0",
        "change config logs-1 v2",
        "change config logs-2 v2",
        "run until restart begins",
        "run until restart is over",
        "change config logs-0 own",
        "run 5m",
    ]);
    assert_eq!(snapshot.ledger.restart, None);
    assert_eq!(snapshot.ledger.history.len(), 1, "{:?}", snapshot.ledger.history);
}

#[test] // proves RESTART-135
fn what_was_given_up_stays_so_after_another_change_is_done() {
    let (snapshot, policy) = moment(&[
        "three nodes",
        "policy onConfigChange rolling",
        "engine of logs-* refuses bad",
        "change config logs-2 bad",
        "run until restart begins",
        "run until restart is over",
        "change config logs-0 v3",
        "change config logs-1 v3",
        "run until restart begins",
        "run until restart is over",
        "run 5m",
    ]);
    let outcomes: Vec<Outcome> =
        snapshot.ledger.history.iter().map(|entry| entry.outcome).collect();
    assert_eq!(outcomes, [Outcome::RolledBack, Outcome::Done]);
    assert_eq!(begun(&snapshot, &policy), [] as [&str; 0]);
}
