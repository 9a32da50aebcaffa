//! Changes of nodes that come before nodes leave: also those that wait for their time, and none that
//! waits for a person.

use super::given_up_updates::given_up;
use super::scenario::moment;
use crate::{Action, Policy, Snapshot, Unknown, annotation, changes_to_come, plan};

const ALL: &str = "policy update relabel,restart,container,resize,replace";

/// Three nodes outside of the maintenance windows, after these lines.
fn outside_windows(lines: &[&str]) -> (Snapshot, Policy) {
    moment(&[&["three nodes", "windows closed for 6h"], lines, &["run 1m"]].concat())
}

fn to_come(lines: &[&str]) -> u32 {
    let (snapshot, policy) = outside_windows(lines);
    assert!(snapshot.ledger.restart.is_none(), "{lines:?}: nothing was requested");
    changes_to_come(&snapshot, &policy).expect("it is known")
}

#[test] // proves DECLARE-34
fn a_template_and_a_config_that_wait_for_their_window_are_to_come() {
    assert_eq!(to_come(&[ALL]), 0, "nothing has changed");
    assert_eq!(to_come(&[ALL, "template logs-* affinity=b"]), 3);
    assert_eq!(to_come(&[ALL, "template logs-1 affinity=b"]), 1);
    let config = ["policy onConfigChange rolling", "change config logs-* v2"];
    assert_eq!(to_come(&config), 3);
    let both = [&config[..], &[ALL, "template logs-1 affinity=b"]].concat();
    assert_eq!(to_come(&both), 3, "a node is counted once");
}

#[test] // proves DECLARE-34
fn a_template_that_is_not_carried_out_is_not_to_come() {
    let not_allowed = ["policy update relabel,restart", "template logs-* affinity=b"];
    assert_eq!(to_come(&not_allowed), 0);
    assert_eq!(to_come(&["template logs-* affinity=b"]), 0, "the mode is off");
    let relabelled = [ALL, "template logs-* label=b"];
    assert_eq!(to_come(&relabelled), 0, "a label takes no node down");
    let stopped = [ALL, "keep logs-1 stopped", "run 5m", "template logs-1 affinity=b"];
    assert_eq!(to_come(&stopped), 0, "a node that is kept stopped is not updated");
}

#[test] // proves DECLARE-34
fn a_template_that_was_given_up_is_not_to_come_and_says_so_outside_of_the_windows() {
    let (mut snapshot, policy) = given_up();
    let waits = snapshot.pods.iter().filter(|pod| matches!(pod.update, Ok(Some(_)))).count();
    assert_eq!(waits, 2, "{:#?}", snapshot.pods);
    assert_eq!(changes_to_come(&snapshot, &policy), Ok(0));

    snapshot.cluster.closed_until = Some(snapshot.now.plus(60_000));
    assert_eq!(changes_to_come(&snapshot, &policy), Ok(0));
    let codes: Vec<&str> =
        plan(&snapshot, &policy).waiting.iter().map(|one| one.code.as_str()).collect();
    assert!(codes.contains(&"update_tried") && !codes.contains(&"outside_window"), "{codes:?}");

    // It is another template now, of this pod alone.
    let pod = snapshot.pods.iter_mut().find(|pod| matches!(pod.update, Ok(Some(_))));
    let Some(Ok(Some(update))) = pod.map(|pod| &mut pod.update) else { panic!("one waits") };
    update.to = "another".into();
    assert_eq!(changes_to_come(&snapshot, &policy), Ok(1));
}

/// A restart of our own would wait until it has left, in the way of a person's.
#[test] // proves DECLARE-34
fn no_restart_of_our_own_is_requested_for_a_node_that_leaves() {
    let config = ["policy onConfigChange rolling", "change config logs-* v2"];
    for lines in [&[ALL, "template logs-* affinity=b"][..], &config] {
        let (mut snapshot, policy) = outside_windows(lines);
        snapshot.cluster.closed_until = None;
        snapshot.pods[0].leaving = Some("4 shards are still on it".into());
        let leaves = snapshot.pods[0].node.clone();
        let actions = plan(&snapshot, &policy).actions;
        let opened = actions.iter().find_map(|action| match action {
            Action::WriteLedger(ledger) => ledger.restart.as_ref(),
            _ => None,
        });
        let members = &opened.unwrap_or_else(|| panic!("{lines:?}: {actions:#?}")).members;
        assert_eq!(members.len(), 2, "{lines:?}");
        assert!(members.iter().all(|member| member.node != leaves), "{lines:?}");
    }
}

#[test] // proves DECLARE-34
fn what_is_not_known_is_no_answer_and_a_node_that_leaves_does_not_count() {
    let (mut snapshot, policy) = outside_windows(&[ALL, "template logs-* affinity=b"]);
    snapshot.pods[0].leaving = Some("4 shards are still on it".into());
    assert_eq!(changes_to_come(&snapshot, &policy), Ok(2));
    let unknown = Unknown { message: "logs-1: not read".into() };
    snapshot.pods[1].update = Err(unknown.clone());
    assert_eq!(changes_to_come(&snapshot, &policy), Err(unknown.clone()));
    let off = Policy { update: [].into(), ..policy.clone() };
    assert_eq!(changes_to_come(&snapshot, &off), Ok(0));
    snapshot.pods[1].leaving = Some("it is empty".into());
    assert_eq!(changes_to_come(&snapshot, &policy), Ok(1));
    let marked = snapshot.pods.iter().any(|pod| pod.annotations.contains_key(annotation::PHASE));
    assert!(!marked, "nothing was begun");
}
