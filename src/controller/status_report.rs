//! The report in the status, and its numbers for the metrics. Pure.

use std::collections::BTreeMap;

use super::failure::Failure;
use super::metrics::Gauges;
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{Condition, Ledger, Report, Time, debts_due};

/// The newest known ledger of the SearchCluster; empty without a status.
pub(super) fn ledger_of(cluster: &SearchCluster) -> Ledger {
    cluster.status.as_ref().map(|status| status.ledger.clone()).unwrap_or_default()
}

/// Numbers of a SearchCluster for the metrics. `certificates`: end of each of its managers' certificates, in
/// seconds since the epoch.
pub(super) fn gauges(
    report: &Report,
    ledger: &Ledger,
    certificates: &BTreeMap<&'static str, u64>,
) -> Gauges {
    Gauges {
        certificates: certificates.clone(),
        blocked: report.blocked.clone(),
        pending_restart: report.counts.pending_restart,
        nodes_down: report.counts.down,
        debts: u32::try_from(debts_due(ledger).len()).unwrap_or(u32::MAX),
        predicates_disabled: report
            .conditions
            .iter()
            .any(|condition| condition.kind == "PredicatesDisabled" && condition.status == "True"),
        restart_under_way: ledger.restart.is_some(),
        allocation_limited: ledger.debts.allocation.is_some(),
        under_way_since: ledger.under_way().map(|member| member.since.0 / 1000).min(),
    }
}

/// The report, with an action that fails repeatedly in it. A rule that blocks keeps its code.
pub(super) fn failing(mut report: Report, failure: &Failure, now: Time) -> Report {
    if report.blocked.is_some() {
        let message = report.message.unwrap_or_default();
        report.message = Some(format!("{message}; in addition, an action fails: {failure}"));
        return report;
    }
    blocked(report, "request_failed", "RequestFailed", failure.to_string(), Until::Later, now)
}

/// The report of a SearchCluster whose pods cannot be listed.
pub(super) fn pods_unlisted(report: Report, message: &str, now: Time) -> Report {
    blocked(report, "pods_unlisted", "PodsUnlisted", message.to_owned(), Until::Later, now)
}

/// End of a blockade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// After a retry, or when something else ends first.
    Later,
    /// After a person has changed something.
    APerson,
}

/// The report of a SearchCluster that is blocked for this reason.
pub(super) fn blocked(
    mut report: Report,
    code: &str,
    reason: &str,
    message: String,
    until: Until,
    now: Time,
) -> Report {
    report.blocked = Some(code.to_owned());
    report.message = Some(message.clone());
    let is_true = |kind: &str| {
        let mut all = report.conditions.iter();
        all.any(|one| one.kind == kind && one.status == "True")
    };
    let is_stalled = until == Until::APerson && !is_true("RestartInProgress");
    let (reconciling, stalled) = if is_stalled { ("False", "True") } else { ("True", "False") };
    let mut changed = vec![("Blocked", "True")];
    // An earlier task for a person stays visible.
    if !is_true("Stalled") {
        changed.extend([("Ready", "False"), ("Reconciling", reconciling), ("Stalled", stalled)]);
    }
    for (kind, status) in changed {
        let condition = Condition {
            kind: kind.into(),
            status: status.into(),
            reason: reason.to_owned(),
            message: message.clone(),
            observed_generation: None,
            last_transition_time: now,
        };
        match report.conditions.iter_mut().find(|known| known.kind == condition.kind) {
            Some(known) => *known = condition,
            None => report.conditions.push(condition),
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
