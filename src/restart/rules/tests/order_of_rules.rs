//! The predicates are evaluated in their published order.

use super::table::cases;
use crate::{Disabled, Predicate};

/// The predicates that block the first candidate, each disabled once it has blocked; and the code
/// that blocks when none is left.
fn one_after_the_other(case: usize) -> (Vec<Predicate>, &'static str) {
    let mut case = cases(include_str!("tables/disabled.txt")).remove(case);
    let mut asked: Vec<Predicate> = Vec::new();
    loop {
        let names: Vec<&str> = asked.iter().map(|predicate| predicate.name()).collect();
        case.policy.disabled = Disabled::by_annotation(&names.join(","));
        let (code, _) = case.select().remove(0).1.expect("an index without replicas remains");
        match Predicate::ALL.into_iter().find(|predicate| predicate.name() == code) {
            Some(predicate) => asked.push(predicate),
            None => return (asked, code),
        }
    }
}

#[test] // proves RULE-11
fn the_rules_are_asked_in_the_published_order() {
    let serves = |health| {
        vec![
            Predicate::DataTier,
            Predicate::MaxUnavailable,
            health,
            Predicate::StartedReplica,
            Predicate::OneMaster,
            Predicate::LastMaster,
            Predicate::SameShards,
            Predicate::WholeTier,
        ]
    };
    assert_eq!(one_after_the_other(0), (serves(Predicate::Yellow), "unreplicated_index"));
    assert_eq!(one_after_the_other(1), (serves(Predicate::GreenOrYellow), "unreplicated_index"));
    let leaves = vec![
        Predicate::Terminating,
        Predicate::StartedReplica,
        Predicate::OneMaster,
        Predicate::SameShards,
    ];
    assert_eq!(one_after_the_other(2), (leaves, "unreplicated_index"));
}

#[test]
fn names_disable_what_they_name_and_others_are_reported() {
    let of = Disabled::by_annotation;
    let names = |text| of(text).iter().map(Predicate::name).collect::<Vec<_>>();
    assert_eq!(names("*"), Predicate::ALL.map(Predicate::name));
    assert_eq!(names(""), [""; 0]);
    assert_eq!(
        names(" require_started_replica ,one_master_at_a_time,,require_started_replica"),
        ["require_started_replica", "one_master_at_a_time"]
    );
    let unknown = of("quorum, One_Master_At_A_Time,*").unknown().unwrap();
    assert!(unknown.contains("One_Master_At_A_Time") && unknown.contains("quorum"), "{unknown}");
    assert!(of("no_such_rule").iter().next().is_none());
}
