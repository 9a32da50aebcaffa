mod backoff;

use super::*;

#[test]
fn looks_that_lead_to_nothing_are_a_second_apart_unless_a_node_is_under_way() {
    let (mut requeue, plan) = (Requeue::default(), Plan::default());
    let pause = |requeue: &Requeue, under_way| requeue.least_pause(under_way, Duration::ZERO);
    for _ in 0..IDLE_BURST {
        requeue.after_plan(&plan, false);
        assert_eq!(pause(&requeue, false), Duration::ZERO);
    }
    requeue.after_failure(None);
    assert_eq!(pause(&requeue, false), IDLE_INTERVAL);
    assert_eq!(pause(&requeue, true), Duration::ZERO);
    requeue.after_plan(&plan, true);
    assert_eq!(pause(&requeue, false), Duration::ZERO);
}

#[test] // proves RESTART-17
fn an_engine_that_needs_long_for_its_answers_is_asked_less_often() {
    let (mut requeue, plan) = (Requeue::default(), Plan::default());
    let reading = Duration::from_millis(700);
    assert_eq!(requeue.least_pause(false, reading), reading);
    let most = Duration::from_secs(2);
    assert_eq!(requeue.least_pause(false, Duration::from_secs(60)), most);
    // Except for the look at what was done, which is not repeated at once.
    requeue.after_plan(&plan, true);
    assert_eq!(requeue.least_pause(false, reading), Duration::ZERO);
    requeue.after_plan(&plan, true);
    assert_eq!(requeue.least_pause(false, reading), reading);
}

#[test] // proves RESTART-17
fn while_a_node_is_under_way_a_slow_answer_holds_the_next_look_for_a_moment_only() {
    let requeue = Requeue::default();
    let pause = |millis| requeue.least_pause(true, Duration::from_millis(millis));
    assert_eq!(pause(30), Duration::from_millis(30));
    assert_eq!(pause(700), Duration::from_millis(100));
}

#[test] // proves RESTART-21
fn while_a_restart_is_under_way_failures_never_keep_the_next_look_waiting() {
    let (mut requeue, mut ledger) = (Requeue::default(), Ledger::default());
    let mut failed = |ledger: &Ledger| requeue.after_failure(Some(ledger));
    for failures in 1..10 {
        assert_eq!(failed(&ledger), pause(failures));
    }
    let restart = serde_json::json!({
        "request": { "id": "r1" }, "started": "2026-11-21T09:00:00Z", "members": [],
    });
    ledger.restart = serde_json::from_value(restart).unwrap();
    assert_eq!(failed(&ledger), Duration::from_secs(2));
    let mut first = Requeue::default();
    assert_eq!(first.after_failure(Some(&ledger)), pause(1));
}

#[test]
fn after_an_action_it_is_at_once_and_slower_when_the_same_is_done_again() {
    let (mut requeue, plan) = (Requeue::default(), Plan::default());
    assert_eq!(requeue.after_plan(&plan, true), Duration::ZERO);
    assert_eq!(requeue.after_plan(&plan, true), pause(1));
    assert_eq!(requeue.after_plan(&plan, true), pause(2));
    requeue.after_ledger();
    assert_eq!(requeue.after_plan(&plan, true), Duration::ZERO);
}

#[test]
fn the_end_of_a_drain_that_comes_nearer_is_the_same() {
    let end = |drain| Plan {
        actions: vec![Action::EndDrain {
            uid: "a".into(),
            sequence: 1,
            drain,
            resume: None,
            exit: false,
        }],
        ..Plan::default()
    };
    let mut requeue = Requeue::default();
    assert_eq!(requeue.after_plan(&end(500), true), Duration::ZERO);
    assert_eq!(requeue.after_plan(&end(470), true), pause(1));
}

#[test]
fn without_an_action_it_is_when_the_plan_says_or_ever_slower() {
    let (mut requeue, mut plan) = (Requeue::default(), Plan::default());
    assert_eq!(requeue.after_plan(&plan, false), POLL_INTERVAL);
    for _ in 0..100 {
        assert!(requeue.after_plan(&plan, false) <= BLOCKED_INTERVAL);
    }
    assert_eq!(requeue.after_plan(&plan, false), BLOCKED_INTERVAL);
    plan.requeue_after = 60_000;
    assert_eq!(requeue.after_plan(&plan, false), Duration::from_secs(60));
}

#[test]
fn a_few_conflicts_are_no_failure() {
    let mut requeue = Requeue::default();
    for _ in 0..EXPECTED_CONFLICTS {
        assert_eq!(requeue.after_conflict(), Duration::ZERO);
        assert!(!requeue.is_failing());
    }
    assert_eq!(requeue.after_conflict(), pause(1));
    assert!(requeue.is_failing());
}
