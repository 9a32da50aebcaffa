use crate::declared::*;

fn refused() -> Verdict {
    let field = "spec.nodeSets[data].count".to_owned();
    Verdict::Refused(vec![Refusal { field, problem: "is 0: write 1 or more".into() }])
}

#[test]
fn a_refusal_blocks_and_says_that_nothing_was_changed() {
    let report = refused().report(Report::default(), Time(0));
    assert_eq!(report.blocked.as_deref(), Some("declaration_refused"));
    let message = report.message.unwrap();
    let expected = "spec.nodeSets[data].count: is 0: write 1 or more; nothing of the cluster was \
                    changed";
    assert_eq!(message, expected);
    let is_stalled =
        report.conditions.iter().any(|one| one.kind == "Stalled" && one.status == "True");
    assert!(is_stalled, "a person has to correct it");
}

#[test]
fn a_rule_that_blocks_keeps_its_code_and_a_message_is_not_replaced() {
    let message = "two of three".to_owned();
    let quorum = blocked(Report::default(), "quorum", "quorum", message, Until::Later, Time(0));
    let both = refused().report(quorum.clone(), Time(1));
    assert_eq!(both.blocked.as_deref(), Some("quorum"));
    assert!(both.message.unwrap().starts_with("two of three; in addition: spec.nodeSets[data]"));
    let waiting = Verdict::Waiting("masters".into());
    assert_eq!(waiting.report(quorum.clone(), Time(1)), quorum);
    let alone = waiting.report(Report::default(), Time(1));
    assert_eq!(alone.message.as_deref(), Some("masters"));
    assert_eq!(Verdict::Done.report(quorum.clone(), Time(1)), quorum);
}
