//! Pays debts: each is tried again until it is paid.

use super::answers::{is_ending, was_refused};
use super::engine::{allocation, record::records};
use super::member::update::back::set_back;
use super::observed::{is_deleted_with_its_pods, is_to_be_stopped};
use crate::changes::Changes;
use crate::context::Context;
use crate::ledger::LedgerChange;
use crate::leftovers::is_left_over;
use crate::{Action, Code, Ledger, Manager, Reason, RecordDebt, StartDebt};
use stayput_api::{ConfigChoice, Desired, State};

/// Starts the engines that are owed a start.
pub(super) fn pay_starts(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    for debt in &ledger.debts.start {
        changes.merge(pay_start(context, ledger, debt));
    }
    changes
}

fn pay_start(context: &Context<'_>, ledger: &Ledger, debt: &StartDebt) -> Changes {
    let uid = debt.pod_uid.as_str();
    let mut changes = Changes::default();
    let Some(pod) = context.index.pod(uid) else {
        // A list with another pod of this name proves that ours is gone. A list without the pod may
        // be incomplete, and counts only after a while.
        let replaced = context.index.pods().any(|pod| pod.node == debt.node);
        let long = context.snapshot.now.since(debt.since) >= context.policy.phase_timeout;
        if replaced || long || is_deleted_with_its_pods(context) {
            return start_paid(debt, "its pod is gone");
        }
        let message = format!("the engine of {} must be started; its pod is gone", debt.node);
        changes.wait_all(Code::Debts, message);
        return changes;
    };
    let manager = context.index.manager(uid);
    let undone = debt.undo.as_ref().and_then(|undo| {
        let manager = manager.as_ref().ok().copied();
        set_back(undo, pod, manager)
    });
    if let Some(action) = undone {
        changes.act(action);
        return changes;
    }
    if is_to_be_stopped(context, pod) {
        if ledger.kept_stopped.iter().any(|kept| kept.pod_uid == debt.pod_uid) {
            return start_paid(debt, "it is kept stopped now");
        }
        // Until that is in the ledger, the request to keep it stopped may be withdrawn.
        changes.wait(uid, Code::KeptStopped, "it is to be kept stopped");
        return changes;
    }
    let manager = match manager {
        Ok(manager) => manager,
        Err(blocker) => {
            changes.block(uid, blocker);
            return changes;
        }
    };
    if manager.sequence > debt.sequence {
        return start_paid(debt, "another client has sent it a request since");
    }
    if manager.sequence < debt.sequence {
        return send_start(debt, manager);
    }
    if was_refused(manager, debt.sequence) && debt.config == ConfigChoice::Mounted {
        // There is no other config to start on; the manager decides again on the same request.
        return send_start(debt, manager);
    }
    if was_refused(manager, debt.sequence) {
        let again = StartDebt {
            sequence: manager.sequence + 1,
            config: ConfigChoice::Mounted,
            ..debt.clone()
        };
        changes.change(LedgerChange::RemoveStartDebt(debt.clone()));
        changes.change(LedgerChange::AddStartDebt(again));
        return changes;
    }
    if manager.desired == Desired::Running && manager.durable {
        return start_paid(debt, "it was started");
    }
    if manager.desired == Desired::Stopped {
        return start_paid(debt, "another client stopped it");
    }
    changes.wait(
        uid,
        Code::NotDurable,
        "its start was accepted, but its manager has not saved that yet",
    );
    changes
}

fn send_start(debt: &StartDebt, manager: &Manager) -> Changes {
    if is_ending(manager.state) || manager.state == State::Stuck {
        let mut changes = Changes::default();
        changes.wait(&debt.pod_uid, Code::Debts, "it is started once it is stopped");
        return changes;
    }
    Changes::action(start_of(debt))
}

/// The start that is owed.
pub(super) fn start_of(debt: &StartDebt) -> Action {
    Action::Start {
        uid: debt.pod_uid.clone(),
        sequence: debt.sequence,
        checksum: None,
        config: debt.config,
    }
}

fn start_paid(debt: &StartDebt, why: &str) -> Changes {
    let mut changes = Changes::of_ledger(LedgerChange::RemoveStartDebt(debt.clone()));
    let message = format!("{} needs no start any more: {why}", debt.node);
    changes.event(None, Reason::DebtPaid, message);
    changes
}

/// Restores allocation once no member holds it any more; and removes a marker that no ledger entry
/// explains: a request that arrived late has set it.
pub(super) fn pay_allocation(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let debt = &ledger.debts.allocation;
    if debt.as_ref().is_some_and(|debt| !debt.holders.is_empty()) {
        return changes;
    }
    match context.index.allocation() {
        Ok(observed) => match allocation::restore(context, observed) {
            Some(action) => changes.act(action),
            None if debt.is_some() => {
                changes.change(LedgerChange::SetAllocationDebt(None));
                changes.event(None, Reason::DebtPaid, "Allocation is as it was");
            }
            None => {}
        },
        Err(_) if debt.is_none() => {}
        Err(_) if is_deleted_with_its_pods(context) => {
            changes.change(LedgerChange::SetAllocationDebt(None));
        }
        Err(blocker) => {
            let message = format!("allocation must be set back: {}", blocker.message);
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
        if records.iter().any(|record| debt.is_about(record)) {
            changes.act(Action::DeleteRecord { node_id: debt.node_id.clone() });
        } else {
            changes.change(paid(debt));
        }
    }
    changes
}

/// Deletes shutdown records of ours that no ledger entry explains: a request that arrived late has
/// made them.
pub(super) fn delete_late_records(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let Ok(engine) = context.index.engine() else { return changes };
    let Ok(Some(records)) = &engine.records else { return changes };
    let listed = |id: &str| engine.nodes.iter().any(|node| node.id == id);
    for record in records {
        if is_left_over(record, ledger) && listed(&record.node_id) {
            changes.act(Action::DeleteRecord { node_id: record.node_id.clone() });
        }
    }
    changes
}
