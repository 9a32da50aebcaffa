//! Debts that no node under way is going to settle.

use std::collections::BTreeSet;

use crate::{AllocationBefore, Ledger};

/// Uids of the pods under way.
fn under_way(ledger: &Ledger) -> BTreeSet<&str> {
    ledger.under_way().map(|member| member.pod_uid.as_str()).collect()
}

/// One message for each debt that no node under way is going to settle.
pub fn due(ledger: &Ledger) -> Vec<String> {
    let under_way = under_way(ledger);
    let debts = &ledger.debts;
    let starts = debts.start.iter().filter(|debt| !under_way.contains(debt.pod_uid.as_str()));
    let starts = starts.map(|debt| format!("the engine of {} must be started", debt.node));
    let held = |uid: &String| under_way.contains(uid.as_str());
    let allocation = debts.allocation.iter().filter(|debt| !debt.holders.iter().any(held));
    let allocation = allocation.map(|debt| {
        format!(
            "cluster.routing.allocation.enable must be restored to {} (restart {})",
            setting(&debt.before),
            debt.restart
        )
    });
    let records = debts.records.iter().filter(|debt| !under_way.contains(debt.pod_uid.as_str()));
    let records = records.map(|debt| {
        format!(
            "the node-shutdown record of {} must be deleted (restart {})",
            debt.node, debt.restart
        )
    });
    let exclusion =
        debts.exclusion.iter().filter(|debt| !under_way.contains(debt.pod_uid.as_str()));
    let exclusion = exclusion.map(|debt| {
        format!("the voting exclusion of {} must be removed (restart {})", debt.node, debt.restart)
    });
    starts.chain(allocation).chain(records).chain(exclusion).collect()
}

fn setting(before: &AllocationBefore) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unset".into());
    match &before.transient {
        None => text(&before.persistent),
        Some(transient) => {
            format!("{} (persistent) and {transient} (transient)", text(&before.persistent))
        }
    }
}
