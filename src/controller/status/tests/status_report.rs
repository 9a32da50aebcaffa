use crate::status::*;

fn later(report: Report, code: &str, message: &str) -> Report {
    blocked(report, code, code, message.into(), Until::Later, Time(0))
}

#[test]
fn a_failing_action_does_not_hide_the_rule_that_blocks() {
    let failure = Failure::EngineNotObserved;
    let alone = failing(Report::default(), &failure, Time(0));
    assert_eq!(alone.blocked.as_deref(), Some("request_failed"));
    assert_eq!(alone.message, Some(failure.to_string()));
    let quorum = later(Report::default(), "quorum", "two of three");
    let both = failing(quorum, &failure, Time(1));
    assert_eq!(both.blocked.as_deref(), Some("quorum"));
    let message = both.message.expect("a message");
    assert!(message.contains("two of three") && message.contains("engine"), "{message}");
    assert_eq!(both.conditions.len(), 4);
}

/// Of `Ready`, `Reconciling` and `Stalled` the one that is True, and its reason.
fn standard(report: &Report) -> (&str, &str) {
    let is_one = |one: &&Condition| {
        ["Ready", "Reconciling", "Stalled"].contains(&&*one.kind) && one.status == "True"
    };
    let found: Vec<&Condition> = report.conditions.iter().filter(is_one).collect();
    let [one] = found[..] else { panic!("{found:?}") };
    (&one.kind, &one.reason)
}

#[test] // proves RESTART-101
fn what_blocks_beside_the_plan_goes_on_or_waits_for_a_person() {
    let passing = later(Report::default(), "a", "it is tried again");
    assert_eq!(standard(&passing), ("Reconciling", "a"));
    let for_a_person =
        |report| blocked(report, "b", "b", "change it".into(), Until::APerson, Time(0));
    let stalled = for_a_person(passing.clone());
    assert_eq!(standard(&stalled), ("Stalled", "b"));
    // What a person has to do is not hidden.
    let both = later(stalled, "c", "it is tried again");
    assert_eq!((standard(&both), both.blocked.as_deref()), (("Stalled", "b"), Some("c")));
    // A restart that is under way goes on.
    let mut restarting = passing;
    let mut condition = restarting.conditions[0].clone();
    (condition.kind, condition.status) = ("RestartInProgress".into(), "True".into());
    restarting.conditions.push(condition);
    assert_eq!(standard(&for_a_person(restarting)), ("Reconciling", "b"));
}
