//! The lines of `watch`, while a restart goes on.

use serde_json::{Value, json};
use stayput_restart::{Outcome, Time};

use crate::progress::{Line, Observation, Reported, State, observe};
use crate::tests::{idle, now, pods, rolling, view};
use crate::view::ClusterView;

/// Observes again, from what was reported before.
fn observed(reported: &mut Reported, view: &ClusterView, now: Time) -> (Vec<Line>, State) {
    let Observation { reported: after, lines, state } = observe(reported.clone(), view, now);
    *reported = after;
    (lines, state)
}

/// The new lines, with the node each is about.
fn messages(reported: &mut Reported, view: &ClusterView, now: Time) -> Vec<String> {
    let (lines, _) = observed(reported, view, now);
    let text = |line: Line| match line.node {
        Some(node) => format!("{node}: {}", line.message),
        None => line.message,
    };
    lines.into_iter().map(text).collect()
}

#[test]
fn a_restart_from_the_request_to_its_end() {
    let mut reported = Reported::new(Some("4f2a91c07b3e".into()));
    let mut before = idle();
    before["handled"] = json!([]);
    before["history"] = json!([]);
    let request = json!({"stayput.dev/restart-request": "{\"id\":\"4f2a91c07b3e\"}"});
    let asked = view(&before, &request, Vec::new());
    assert_eq!(messages(&mut reported, &asked, now()), ["restart 4f2a91c07b3e is requested"]);
    assert_eq!(reported.next_check_in(now()), Some(15_000));
    assert!(messages(&mut reported, &asked, now().plus(1)).is_empty());
    let unheard = messages(&mut reported, &asked, now().plus(15_000));
    assert_eq!(unheard, ["the request is not accepted yet; check that stayput-reconciler runs"]);

    let mut status = rolling();
    assert_eq!(
        messages(&mut reported, &view(&status, &request, pods()), now()),
        [
            "rolling restart 4f2a91c07b3e of 3 nodes, requested by alice",
            "logs-2: done after 1m 14s",
            "logs-1: start: logs-1 was started and has not joined yet",
        ]
    );
    assert_eq!(reported.next_check_in(now()), None);
    assert!(messages(&mut reported, &view(&status, &request, pods()), now()).is_empty());

    status["blocked"] = "health".into();
    status["message"] = "the cluster is red".into();
    let blocked = view(&status, &request, pods());
    assert_eq!(messages(&mut reported, &blocked, now()), ["blocked by health: the cluster is red"]);
    status.as_object_mut().unwrap().remove("blocked");
    status["restart"]["ending"] = json!({"outcome": "aborted", "reason": "cancelled"});
    assert_eq!(
        messages(&mut reported, &view(&status, &request, pods()), now()),
        [
            "no longer blocked",
            "no further node is stopped; the restart will end as aborted: cancelled"
        ]
    );

    let mut over = idle();
    over["history"][0]["outcome"] = "aborted".into();
    over["history"][0]["reason"] = "cancelled".into();
    // The ledger is ahead of the pods: the end is reported when they have followed.
    let (lines, state) = observed(&mut reported, &view(&over, &request, pods()), now());
    assert_eq!((lines.len(), state), (0, State::Open));
    assert_eq!(reported.next_check_in(now()), Some(2_000));
    let (lines, state) = observed(&mut reported, &view(&over, &request, Vec::new()), now());
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].message, "restart 4f2a91c07b3e aborted: 3 nodes in 1m 40s: cancelled");
    assert_eq!(lines[0].ended.as_ref().map(|entry| entry.outcome), Some(Outcome::Aborted));
    assert!(matches!(state, State::Ended(entry) if entry.id == "4f2a91c07b3e"));
}

#[test]
fn how_much_longer_it_takes_is_told_with_each_node_that_is_done() {
    let mut reported = Reported::new(None);
    let mut status = rolling();
    status["estimate"] = "about 4 minutes left, estimated from 1 of 3 nodes".into();
    let lines = messages(&mut reported, &view(&status, &Value::Null, pods()), now());
    assert_eq!(lines[3..], ["about 4 minutes left, estimated from 1 of 3 nodes"]);
    status["estimate"] = "about 3 minutes left, estimated from 1 of 3 nodes".into();
    let later = now().plus(60_000);
    assert!(messages(&mut reported, &view(&status, &Value::Null, pods()), later).is_empty());
    status["restart"]["members"][1]["step"] = "finished".into();
    status["estimate"] = "about 2 minutes left, estimated from 2 of 3 nodes".into();
    let lines = messages(&mut reported, &view(&status, &Value::Null, pods()), later);
    assert_eq!(lines, ["about 2 minutes left, estimated from 2 of 3 nodes"]);
}

#[test]
fn without_an_id_the_one_under_way_or_else_the_next_is_followed() {
    let mut reported = Reported::new(None);
    let rest = view(&idle(), &Value::Null, Vec::new());
    assert_eq!(
        messages(&mut reported, &rest, now()),
        ["no restart is under way; waiting for the next one"]
    );
    assert!(
        messages(&mut reported, &rest, now()).is_empty(),
        "the one that is over is not followed"
    );
    let begun = messages(&mut reported, &view(&rolling(), &Value::Null, pods()), now());
    assert_eq!(begun[0], "rolling restart 4f2a91c07b3e of 3 nodes, requested by alice");
    // Pods that stay behind are not waited for for ever.
    let late = view(&idle(), &Value::Null, pods());
    assert_eq!(observed(&mut reported, &late, now()).1, State::Open);
    assert!(matches!(observed(&mut reported, &late, now().plus(2_000)).1, State::Ended(_)));
}

#[test]
fn an_id_that_nobody_has_requested_is_not_called_a_request() {
    let mut reported = Reported::new(Some("typo".into()));
    let rest = view(&idle(), &Value::Null, Vec::new());
    let (lines, state) = observed(&mut reported, &rest, now());
    assert_eq!(lines[0].message, "no restart typo is known; waiting for it");
    assert!(lines[0].is_trouble, "also who waits for the end alone sees it");
    assert_eq!((lines.len(), state), (1, State::Open));
    assert_eq!(reported.next_check_in(now()), None);
    assert!(messages(&mut reported, &rest, now().plus(60_000)).is_empty());
    // Once it is requested, the reconciler has its time.
    let request = json!({"stayput.dev/restart-request": "{\"id\":\"typo\"}"});
    let asked = view(&idle(), &request, Vec::new());
    let later = now().plus(60_000);
    assert_eq!(messages(&mut reported, &asked, later), ["restart typo is requested"]);
    assert_eq!(reported.next_check_in(later), Some(15_000));
    // It is withdrawn.
    let line = ["no restart typo is known; waiting for it"];
    assert_eq!(messages(&mut reported, &rest, later.plus(15_000)), line);
}

#[test]
fn what_is_not_requested_is_looked_at_only_when_it_changes() {
    let mut reported = Reported::new(None);
    messages(&mut reported, &view(&idle(), &Value::Null, Vec::new()), now());
    assert_eq!(reported.next_check_in(now().plus(60_000)), None);
}

#[test]
fn what_was_adopted_never_begins() {
    let mut status = idle();
    status["history"] = json!([]);
    let mut reported = Reported::new(Some("4f2a91c07b3e".into()));
    let (_, state) = observed(&mut reported, &view(&status, &Value::Null, pods()), now());
    assert!(matches!(state, State::Lost(_)));
}

#[test]
fn what_is_queued_says_what_it_waits_for() {
    let mut status = rolling();
    status["queued"] = json!({"id": "next", "strategy": "rolling", "target": {}});
    status["handled"].as_array_mut().unwrap().push("next".into());
    let mut reported = Reported::new(Some("next".into()));
    assert_eq!(
        messages(&mut reported, &view(&status, &Value::Null, pods()), now()),
        ["restart next waits until restart 4f2a91c07b3e has ended"]
    );
    // It is in the queue: the reconciler has accepted it.
    assert!(
        messages(&mut reported, &view(&status, &Value::Null, pods()), now().plus(60_000))
            .is_empty()
    );
    assert_eq!(reported.next_check_in(now().plus(60_000)), None);
}
