//! Disabled predicates are shown until they are enabled again.

use super::{condition, three};
use crate::{Code, Disabled, Plan, Policy, Predicate, report};

fn shown(disabled: Disabled) -> (String, String, String) {
    let policy = Policy { disabled, ..Policy::default() };
    let report = report(&three(), &policy, &Plan::default());
    let (status, reason, message) = condition(&report, "PredicatesDisabled");
    (status.into(), reason.into(), message.into())
}

#[test]
fn what_is_off_is_named_with_the_command_that_puts_it_on() {
    let off = "only_restart_healthy_node_if_green_or_yellow";
    let (status, reason, message) = shown(Disabled::by_annotation(off));
    assert_eq!((&*status, &*reason), ("True", "Disabled"));
    assert_eq!(
        message,
        "only_restart_healthy_node_if_green_or_yellow is not evaluated; to enable again: \
         kubectl annotate searchcluster logs --namespace search \
         eck.k8s.elastic.co/disable-upgrade-predicates-"
    );
    let two = [Predicate::Yellow.name(), Predicate::DataTier.name()];
    let (_, _, message) = shown(Disabled::by_annotation(&two.join(",")));
    assert!(
        message.starts_with(&format!("{}, {} are not evaluated; to enable again", two[1], two[0])),
        "{message}"
    );
    let (_, _, message) = shown(Disabled::by_annotation("*"));
    assert!(message.starts_with("no predicate is evaluated; to enable again"), "{message}");
}

#[test]
fn a_predicate_blocks_under_its_published_name() {
    for predicate in Predicate::ALL {
        let waits = super::waits(Some("logs-0"), Code::Predicate(predicate), "logs-0 waits");
        let report = super::shown(&three(), &[waits]);
        assert_eq!(report.blocked.as_deref(), Some(predicate.name()));
        assert_eq!(condition(&report, "Blocked"), ("True", predicate.name(), "logs-0 waits"));
        assert_eq!(report.nodes[0].blocked_by.as_deref(), Some(predicate.name()));
    }
}

#[test]
fn a_name_that_means_nothing_is_shown_and_blocks_nothing() {
    let (status, reason, message) = shown(Disabled::by_annotation("yellow"));
    assert_eq!((&*status, &*reason), ("False", "UnknownNames"));
    assert!(message.starts_with("\"yellow\" in eck.k8s.elastic.co/"), "{message}");
    let (status, _, message) = shown(Disabled::by_annotation("yellow, one_master_at_a_time"));
    assert_eq!(status, "True");
    assert!(message.contains("; also, \"yellow\" in"), "{message}");
    let policy = Policy { disabled: Disabled::by_annotation("yellow"), ..Policy::default() };
    let made = crate::plan(&three(), &policy);
    assert_eq!(report(&three(), &policy, &made).blocked, None);
}
