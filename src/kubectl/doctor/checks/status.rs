//! Checks the reconciler's status on the SearchCluster: progress, and changes to undo.

use stayput_restart::{Condition, debts_due};

use crate::doctor::facts::Facts;
use crate::doctor::finding::Finding;
use crate::format::{NOT_PROCESSED, rounded_duration};

/// Age from which waiting does not help to undo a change, in milliseconds.
const OLD_DEBT: u64 = 15 * 60_000;

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let (namespace, name) = (facts.namespace(), facts.name());
    let look = || format!("kubectl stayput -n {namespace} status {name}");
    let Some(status) = &facts.cluster.status else {
        let log = "kubectl -n stayput logs deployment/stayput-reconciler";
        return vec![Finding::error("not_processed", facts.object(), NOT_PROCESSED, log)];
    };
    let mut found = Vec::new();
    let generation = facts.cluster.metadata.generation;
    if status.observed_generation < generation {
        let message = "the reconciler has not seen the last change of the spec yet";
        found.push(Finding::error("status_behind", facts.object(), message, look()).into_warning());
    }
    let condition = |kind: &str| {
        let mut all = status.report.conditions.iter();
        all.find(|one| one.kind == kind && one.status == "True")
    };
    let age = |condition: &Condition| facts.now.since(condition.last_transition_time);
    if let Some(stalled) = condition("Stalled") {
        let message = format!(
            "it waits for a person since {}: {}",
            rounded_duration(age(stalled) / 1000),
            stalled.message
        );
        found.push(Finding::error("stalled", facts.object(), message, look()));
    }
    let debts = debts_due(&status.ledger);
    if !debts.is_empty() {
        let degraded = condition("Degraded").map_or(0, age);
        let message =
            format!("pending for {}: {}", rounded_duration(degraded / 1000), debts.join("; "));
        let finding = Finding::error("debts", facts.object(), message, look());
        found.push(if degraded >= OLD_DEBT { finding } else { finding.into_warning() });
    }
    found
}
