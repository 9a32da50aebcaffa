//! Debts that are due, as against those that every restart under way has.

use std::collections::BTreeSet;

use crate::{AllocationBefore, Ledger};

/// Uids of the pods whose nodes are being restarted or brought back.
pub(super) fn under_way(ledger: &Ledger) -> BTreeSet<&str> {
    ledger.under_way().map(|member| member.pod_uid.as_str()).collect()
}

/// One sentence for each debt that nobody under way is going to settle.
pub fn due(ledger: &Ledger) -> Vec<String> {
    let under_way = under_way(ledger);
    let debts = &ledger.debts;
    let starts = debts.start.iter().filter(|debt| !under_way.contains(debt.pod_uid.as_str()));
    let starts = starts.map(|debt| format!("the engine of {} must be told to run", debt.node));
    let held = |uid: &String| under_way.contains(uid.as_str());
    let allocation = debts.allocation.iter().filter(|debt| !debt.holders.iter().any(held));
    let allocation = allocation.map(|debt| {
        format!(
            "cluster.routing.allocation.enable must be set back to {} (restart {})",
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
    let said = |value: &Option<String>| value.clone().unwrap_or_else(|| "unset".into());
    match &before.transient {
        None => said(&before.persistent),
        Some(transient) => {
            format!("{} (persistent) and {transient} (transient)", said(&before.persistent))
        }
    }
}
