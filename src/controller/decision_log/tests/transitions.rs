//! The transitions between two ledgers.

use serde_json::json;

use crate::decision_log::*;

fn ledger(members: &serde_json::Value) -> Ledger {
    let request = json!({"id": "r1", "strategy": "rolling"});
    let restart =
        json!({"request": request, "started": "1970-01-01T00:00:00Z", "members": members});
    serde_json::from_value(json!({ "restart": restart })).expect("a ledger")
}

fn member(node: &str, step: &str) -> serde_json::Value {
    json!({
        "podUid": format!("u-{node}"), "pod": node, "node": node, "step": step,
        "since": "1970-01-01T00:00:00Z", "stopSequence": 1, "startSequence": 2,
    })
}

#[test]
fn a_member_is_measured_from_its_slot_to_its_start_and_from_there_to_its_end() {
    let before = ledger(&json!([member("logs-0", "restarting"), member("logs-1", "scheduled")]));
    let after = ledger(&json!([member("logs-0", "finished"), member("logs-1", "restarting")]));
    let uid = "u-logs-0".to_owned();
    let start = Action::Start {
        uid,
        sequence: 2,
        checksum: None,
        config: stayput_api::ConfigChoice::default(),
    };
    let (stopped, starts) =
        of_actions(std::slice::from_ref(&start), &before, Time(2000), StartTimes::default());
    assert_eq!(stopped, [Transition::Stopped { strategy: "rolling", seconds: 2.0 }]);
    let (again, starts) = of_actions(&[start], &before, Time(3000), starts);
    assert!(again.is_empty(), "a repeated request does not count: {again:?}");
    let (transitions, starts) = between(&before, &after, Time(5000), starts);
    let steps = transitions.iter().filter(|one| matches!(one, Transition::Step { .. }));
    assert_eq!(steps.count(), 2);
    let finished = Transition::Finished {
        restart: "r1".into(),
        node: "logs-0".into(),
        strategy: "rolling",
        seconds: 5.0,
        start: 3.0,
    };
    assert!(transitions.contains(&finished), "{transitions:?}");
    assert!(starts.0.is_empty());
}

#[test]
fn a_restart_ends_with_its_entry_in_the_history() {
    let before = ledger(&json!([member("logs-0", "restarting")]));
    let entry = json!({
        "id": "r1", "strategy": "rolling", "outcome": "done", "reason": "as asked",
        "started": "1970-01-01T00:00:00Z", "seconds": 5, "nodes": 1,
    });
    let after: Ledger = serde_json::from_value(json!({"history": [entry]})).expect("a ledger");
    let (transitions, _) = between(&before, &after, Time(5000), StartTimes::default());
    assert_eq!(transitions, [Transition::Ended(after.history[0].clone())]);
    let (transitions, _) = between(&after, &after, Time(6000), StartTimes::default());
    assert!(transitions.is_empty());
}
