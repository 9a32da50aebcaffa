//! Checks the reconciler's status on the SearchCluster: if it is there and current, and every condition that is
//! not as it should be.

use stayput_restart::Condition;

use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, Severity};
use crate::format::{NOT_PROCESSED, rounded_duration};
use crate::runbook;

/// Age from which waiting does not help a degraded cluster, in milliseconds.
const OLD: u64 = 15 * 60_000;

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let Some(status) = &facts.cluster.status else {
        let log = "kubectl -n stayput logs deployment/stayput-reconciler";
        return vec![Finding::error("not_processed", facts.object(), NOT_PROCESSED, log)];
    };
    let is_behind = status.observed_generation < facts.cluster.metadata.generation;
    let behind = is_behind.then(|| {
        let message = "the reconciler has not seen the last change of the spec yet";
        Finding::error("status_behind", facts.object(), message, look(facts)).into_warning()
    });
    behind.into_iter().collect()
}

fn look(facts: &Facts) -> String {
    format!("kubectl stayput -n {} status {}", facts.namespace(), facts.name())
}

/// A finding for the conditions that are not as they should be, unless `found` has one with their reason as its
/// code. Those with the same reason and message are one.
pub(crate) fn conditions(facts: &Facts, found: &[Finding]) -> Vec<Finding> {
    let conditions = facts.cluster.status.iter().flat_map(|status| &status.report.conditions);
    let mut groups: Vec<(Severity, Vec<&str>, &Condition)> = Vec::new();
    for one in conditions.filter(|one| !found.iter().any(|found| found.code == one.reason)) {
        let Some(severity) = severity(facts, one) else { continue };
        let is_same =
            |other: &Condition| (&other.reason, &other.message) == (&one.reason, &one.message);
        match groups.iter_mut().find(|(_, _, other)| is_same(other)) {
            Some((worst, kinds, _)) => {
                *worst = severity.min(*worst);
                kinds.push(&one.kind);
            }
            None => groups.push((severity, vec![&one.kind], one)),
        }
    }
    let finding = |(severity, kinds, one): (Severity, Vec<&str>, &Condition)| {
        let since = rounded_duration(facts.now.since(one.last_transition_time) / 1000);
        let message = format!(
            "{} {} for {since} ({}): {}",
            kinds.join(" and "),
            one.status,
            one.reason,
            one.message
        );
        let page = runbook::about(&one.reason)
            .map(|_| format!("\nkubectl stayput runbook {}", one.reason));
        let remedy = look(facts) + &page.unwrap_or_default();
        Finding { severity, ..Finding::error("condition", facts.object(), message, remedy) }
    };
    groups.into_iter().map(finding).collect()
}

/// How bad a condition is, unless it is as it should be. `Ready` only says again what others say.
fn severity(facts: &Facts, condition: &Condition) -> Option<Severity> {
    let age = facts.now.since(condition.last_transition_time);
    match (condition.kind.as_str(), condition.status.as_str()) {
        ("Stalled", "True") | ("Available", "False") => Some(Severity::Error),
        ("Degraded", "True") if age >= OLD => Some(Severity::Error),
        ("Degraded" | "Blocked" | "PredicatesDisabled", "True")
        | ("Available", "Unknown")
        | ("CertificatesValid", "False") => Some(Severity::Warning),
        _ => None,
    }
}
