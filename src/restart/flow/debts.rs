//! Pays debts: each is retried until it is paid.

mod config;
mod starts;

use super::engine::{allocation, record::records};
use super::observed::is_deleted_with_its_pods;
use crate::changes::Changes;
use crate::context::Context;
use crate::ledger::LedgerChange;
use crate::leftovers::is_left_over;
use crate::{Action, Code, Ledger, Reason, RecordDebt};

pub(super) use config::{is_due_on, is_started_later};
pub(super) use starts::{is_waited_for, pay_starts, start_of};

/// Restores allocation once no member holds it any more; and removes a marker that no ledger entry explains:
/// a late request has set it.
pub(super) fn pay_allocation(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let debt = &ledger.debts.allocation;
    if debt.as_ref().is_some_and(|debt| !debt.holders.is_empty()) {
        return changes;
    }
    match context.index.allocation() {
        Ok(observed) => match allocation::restore(context, observed) {
            Some(action) => changes.act(action),
            None => {
                if let Some(debt) = debt {
                    changes.change(LedgerChange::SetAllocationDebt(None));
                    match allocation::left_behind(observed, debt) {
                        Some(left) => changes.event(None, Reason::ForeignController, left),
                        None => changes.event(None, Reason::DebtPaid, "Allocation is restored"),
                    }
                }
            }
        },
        Err(_) if debt.is_none() => {}
        Err(_) if is_deleted_with_its_pods(context) => {
            changes.change(LedgerChange::SetAllocationDebt(None));
        }
        Err(blocker) => {
            let message = format!("allocation must be restored: {}", blocker.message);
            changes.wait_all(Code::Debts, message);
        }
    }
    changes
}

/// Deletes shutdown records of pods that are no longer under way.
pub(super) fn pay_records(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let debts = &ledger.debts.records;
    let due: Vec<&RecordDebt> =
        debts.iter().filter(|debt| ledger.is_released(&debt.pod_uid)).collect();
    if due.is_empty() {
        return changes;
    }
    let paid = |debt: &RecordDebt| LedgerChange::RemoveRecordDebt(debt.clone());
    if is_deleted_with_its_pods(context) {
        changes.ledger.extend(debts.iter().map(paid));
        return changes;
    }
    let records = match records(context) {
        Ok(records) => records,
        Err(blocker) => {
            changes.wait_all(Code::Debts, blocker.message);
            return changes;
        }
    };
    for debt in due {
        if records.iter().any(|record| debt.is_about(record, context.index.cluster())) {
            changes.act(Action::DeleteRecord { node_id: debt.node_id.clone() });
        } else {
            changes.change(paid(debt));
        }
    }
    changes
}

/// Deletes shutdown records of ours that no ledger entry explains: late requests have made them.
pub(super) fn delete_late_records(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let Ok(engine) = context.index.engine() else { return changes };
    let Ok(Some(records)) = &engine.records else { return changes };
    let listed = |id: &str| engine.nodes.iter().any(|node| node.id == id);
    for record in records {
        if is_left_over(record, ledger, context.index.cluster()) && listed(&record.node_id) {
            changes.act(Action::DeleteRecord { node_id: record.node_id.clone() });
        }
    }
    changes
}
