use crate::certificates::*;

const END: u64 = 1_798_761_600;

fn seen(problems: &[Problem]) -> Seen {
    Seen {
        ends: BTreeMap::from([("serving", END), ("ca", END + 1)]),
        problems: problems.to_vec(),
        failure: None,
    }
}

fn condition(seen: &Seen) -> Option<(String, String, String)> {
    let report = seen.report(Report::default(), Time(0));
    assert_eq!(seen.report(report.clone(), Time(0)), report, "twice is once");
    let only = report.conditions.into_iter().next()?;
    assert_eq!(only.kind, CONDITION);
    Some((only.status, only.reason, only.message))
}

fn soon() -> Problem {
    Problem::ExpiresSoon { object: "logs-manager-tls".into(), at: END }
}

#[test]
fn the_condition_says_what_is_wrong_or_until_when_nothing_is() {
    let of = |status: &str, reason: &str, message: &str| {
        Some((status.to_owned(), reason.to_owned(), message.to_owned()))
    };
    assert_eq!(condition(&Seen::default()), None, "nothing is known");
    assert_eq!(condition(&seen(&[])), of("True", "Valid", "until 2027-01-01T00:00:00Z"));
    let wrong = seen(&[soon()]);
    assert_eq!(condition(&wrong), of("False", "ExpiresSoon", &soon().to_string()));
    let failed = Seen { failure: Some("no answer".into()), ..seen(&[]) };
    assert_eq!(condition(&failed), of("Unknown", "NotRead", "no answer"));
}

#[test]
fn each_problem_is_an_event_once() {
    let (good, wrong) = (seen(&[]), seen(&[soon()]));
    assert_eq!(wrong.news(&good), Some(soon().to_string()));
    assert_eq!(wrong.news(&wrong), None);
    assert_eq!(good.news(&wrong), None);
}
