//! The report in the status, and what of it the metrics show. Pure.

use std::collections::BTreeMap;

use super::failure::Failure;
use super::metrics::Gauges;
use crate::cluster::SearchCluster;
use stayput_restart::{Condition, Ledger, Report, Time, debts_due};

/// The ledger in the SearchCluster as it is known; without a status an empty one.
pub(super) fn ledger_of(cluster: &SearchCluster) -> Ledger {
    cluster.status.as_ref().map(|status| status.ledger.clone()).unwrap_or_default()
}

/// What the metrics show of a SearchCluster. `certificates` is when each of its managers'
/// certificates ends.
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
    blocked(report, "request_failed", "RequestFailed", failure.to_string(), now)
}

/// The report of a SearchCluster whose pods cannot be listed.
pub(super) fn pods_unlisted(report: Report, message: &str, now: Time) -> Report {
    blocked(report, "pods_unlisted", "PodsUnlisted", message.to_owned(), now)
}

/// The report, blocked by this.
pub(super) fn blocked(
    mut report: Report,
    code: &str,
    reason: &str,
    message: String,
    now: Time,
) -> Report {
    report.blocked = Some(code.to_owned());
    report.message = Some(message.clone());
    for (kind, status) in [("Ready", "False"), ("Reconciling", "True"), ("Blocked", "True")] {
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

    #[test]
    fn a_failing_action_does_not_hide_the_rule_that_blocks() {
        let failure = Failure::EngineNotObserved;
        let alone = failing(Report::default(), &failure, Time(0));
        assert_eq!(alone.blocked.as_deref(), Some("request_failed"));
        assert_eq!(alone.message, Some(failure.to_string()));
        let quorum = blocked(Report::default(), "quorum", "quorum", "two of three".into(), Time(0));
        let both = failing(quorum, &failure, Time(1));
        assert_eq!(both.blocked.as_deref(), Some("quorum"));
        let message = both.message.expect("a message");
        assert!(message.contains("two of three") && message.contains("engine"), "{message}");
        assert_eq!(both.conditions.len(), 3);
    }
}
