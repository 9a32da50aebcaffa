//! The step for each state.

use super::{DAY, HOUR, START, YEAR, authority, existing, good, serving};
use crate::{CertificateFacts, Decision, Existing, Id, Problem, Step, decide};

fn step(change: impl FnOnce(&mut CertificateFacts)) -> Option<Step> {
    let mut facts = good();
    change(&mut facts);
    let Decision { step, problems } = decide(&facts);
    assert_eq!(problems, [], "{facts:#?}");
    step
}

fn problem(change: impl FnOnce(&mut CertificateFacts)) -> Problem {
    let mut facts = good();
    change(&mut facts);
    let Decision { step, problems } = decide(&facts);
    assert_eq!(step, None, "{facts:#?}");
    problems.into_iter().next().unwrap()
}

fn trust(ids: &[u8]) -> Option<Step> {
    Some(Step::Trust(ids.iter().map(|id| Id([*id; 32])).collect()))
}

fn broken<T>() -> Option<Existing<T>> {
    Some(Existing { is_ours: true, content: Err("no PEM".into()) })
}

#[test]
fn nothing_is_written_when_all_is_good() {
    assert_eq!(step(|_| {}), None);
    assert_eq!(step(|facts| facts.may_create = true), None);
    assert_eq!(step(|facts| facts.now = START + 243 * DAY), None);
}

#[test]
fn what_is_absent_is_made_in_its_order() {
    let nothing = |facts: &mut CertificateFacts| {
        facts.may_create = true;
        (facts.authority, facts.trusted, facts.serving) = (None, None, None);
    };
    assert_eq!(step(nothing), Some(Step::MakeAuthority));
    let with_authority = |facts: &mut CertificateFacts| {
        nothing(facts);
        facts.authority = existing(authority(1, facts.now));
    };
    assert_eq!(step(with_authority), trust(&[1]));
    let trusted = |facts: &mut CertificateFacts| {
        with_authority(facts);
        facts.trusted = existing(vec![authority(1, facts.now)]);
    };
    assert_eq!(step(trusted), Some(Step::Issue));
}

#[test]
fn the_certificate_is_renewed_when_two_thirds_of_its_life_are_over() {
    let due = START - HOUR + (YEAR + HOUR) / 3 * 2;
    assert_eq!(step(|facts| facts.now = due - 1), None);
    assert_eq!(step(|facts| facts.now = due), Some(Step::Issue));
}

#[test]
fn a_certificate_that_cannot_be_used_is_replaced_at_once() {
    let with = |change: fn(&mut crate::Serving)| {
        step(move |facts| {
            let mut content = serving(1, START);
            change(&mut content);
            facts.serving = existing(content);
        })
    };
    assert_eq!(with(|serving| serving.is_named = false), Some(Step::Issue));
    assert_eq!(with(|serving| serving.signed_by = None), Some(Step::Issue));
    assert_eq!(with(|serving| serving.signed_by = Some(Id([9; 32]))), Some(Step::Issue));
    assert_eq!(with(|serving| serving.validity.not_before = START + 2 * DAY), Some(Step::Issue));
    assert_eq!(step(|facts| facts.serving = broken()), Some(Step::Issue));
    assert_eq!(step(|facts| facts.trusted = broken()), trust(&[1]));
}

#[test] // proves RESTART-6
fn a_ca_is_changed_with_both_trusted() {
    let due = START - HOUR + (10 * YEAR + HOUR) / 3 * 2;
    let old = due - 10 * DAY;
    let at = |hours: u64, change: &dyn Fn(&mut CertificateFacts)| {
        step(|facts| {
            facts.now = due + hours * HOUR;
            facts.serving = existing(serving(1, old));
            change(facts);
        })
    };
    assert_eq!(at(0, &|_| {}), Some(Step::MakeAuthority));
    let made = |facts: &mut CertificateFacts| facts.authority = existing(authority(2, due));
    assert_eq!(at(0, &made), trust(&[2, 1]));
    let both = |facts: &mut CertificateFacts| {
        made(facts);
        facts.trusted = existing(vec![authority(2, due), authority(1, START)]);
        facts.trusted_since = due;
    };
    assert_eq!(at(0, &both), None, "others read it first");
    assert_eq!(at(1, &both), Some(Step::Issue));
    let issued = |facts: &mut CertificateFacts| {
        both(facts);
        facts.serving = existing(serving(2, due + HOUR));
    };
    assert_eq!(at(24, &issued), None, "the old one may still be mounted");
    assert_eq!(at(25, &issued), trust(&[2]));
}

#[test]
fn a_ca_that_is_over_is_not_trusted_beside_the_next_one() {
    let now = START + 11 * YEAR;
    let step = |facts: &mut CertificateFacts| {
        facts.now = now;
        facts.authority = existing(authority(2, now));
    };
    let mut facts = good();
    step(&mut facts);
    assert_eq!(decide(&facts).step, trust(&[2]));
}

#[test]
fn without_the_right_to_create_a_gap_is_a_problem() {
    for (at, name) in
        ["logs-manager-ca-key", "logs-manager-ca", "logs-manager-tls"].iter().enumerate()
    {
        let problem = problem(|facts| match at {
            0 => facts.authority = None,
            1 => facts.trusted = None,
            _ => facts.serving = None,
        });
        let expected = format!(
            "Secret {name} is absent: `kubectl stayput -n search init logs` makes it again"
        );
        assert_eq!((problem.to_string(), problem.reason()), (expected, "SecretAbsent"));
    }
    let mut none = good();
    (none.authority, none.trusted, none.serving) = (None, None, None);
    assert_eq!(decide(&none), Decision::default(), "these are kept elsewhere");
}

#[test]
fn what_somebody_else_made_is_never_changed() {
    let foreign = |facts: &mut CertificateFacts| {
        facts.authority.as_mut().unwrap().is_ours = false;
        facts.trusted.as_mut().unwrap().is_ours = false;
        facts.serving.as_mut().unwrap().is_ours = false;
    };
    for may_create in [false, true] {
        let all = step(|facts| {
            foreign(facts);
            (facts.may_create, facts.now) = (may_create, START + 300 * DAY);
        });
        assert_eq!(all, None);
    }
    let one = problem(|facts| facts.serving.as_mut().unwrap().is_ours = false);
    assert_eq!(one.reason(), "NotKept");
    let gap = problem(|facts| {
        foreign(facts);
        (facts.may_create, facts.trusted) = (true, None);
    });
    assert_eq!(gap.reason(), "NotKept");
}

#[test] // proves RESTART-9
fn the_end_is_said_before_it_comes_whoever_made_it() {
    let at = |days: u64| {
        problem(|facts| {
            facts.now = START + days * DAY;
            facts.authority = None;
            facts.trusted.as_mut().unwrap().is_ours = false;
            facts.serving.as_mut().unwrap().is_ours = false;
        })
    };
    assert_eq!(at(352).reason(), "ExpiresSoon");
    let text =
        "the certificate in Secret logs-manager-tls expires at 2027-01-01T00:00:00Z: renew it";
    assert_eq!(at(352).to_string(), text);
    assert_eq!(at(366).reason(), "Expired");
}

#[test]
fn a_key_that_cannot_be_used_is_not_thrown_away() {
    let problem = problem(|facts| facts.authority = broken());
    assert_eq!(problem.reason(), "SecretUnusable");
}

#[test] // proves RESTART-6
fn with_a_wrong_clock_nothing_is_made() {
    let decided = |differs: u64| {
        let mut facts = good();
        (facts.now, facts.clock_differs) = (START + 300 * DAY, Some(differs));
        decide(&facts)
    };
    assert_eq!(decided(1800).step, Some(Step::Issue));
    let wrong = decided(1801);
    assert_eq!((wrong.step, wrong.problems[0].reason()), (None, "ClocksDiffer"));
}
