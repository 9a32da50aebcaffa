//! Debts that steps have left behind, and what late requests have set. A start that a coordinated restart
//! owes needs the right config: on another one than the nodes that have joined, the engine may be unable to
//! form one cluster with them.

pub(crate) mod starts;

use crate::changes::Changes;
use crate::flow::answers::{SEQUENCE_GAP, was_refused};
use crate::flow::debts::starts::replace;
use crate::flow::engine::record::records;
use crate::flow::engine::{limit_left_behind, restore_allocation};
use crate::flow::member::start::not_mounted;
use crate::flow::observed::{expected_now, if_gone_for_good, is_deleted_with_its_pods};
use crate::late_requests::is_left_over;
use crate::ledger::LedgerChange;
use crate::needs_coordinated::needs_coordinated_between;
use crate::snapshot::namespace_and_name;
use crate::{
    Action, Blocker, Code, Context, Ledger, Manager, Pod, Reason, RecordDebt, Restart, StartDebt,
};
use stayput_api::checksum::short;
use stayput_api::{Desired, State};

pub(crate) use starts::pay_starts;

/// Restores allocation once no member holds it any more; and removes a marker that no ledger entry explains:
/// a late request has set it.
pub(crate) fn pay_allocation(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let debt = &ledger.debts.allocation;
    if debt.as_ref().is_some_and(|debt| !debt.holders.is_empty()) {
        return changes;
    }
    match context.index.allocation() {
        Ok(observed) => match restore_allocation(context, observed) {
            Some(action) => changes.act(action),
            None => {
                if let Some(debt) = debt {
                    changes.change(LedgerChange::SetAllocationDebt(None));
                    match limit_left_behind(observed, debt) {
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
pub(crate) fn pay_records(context: &Context<'_>, ledger: &Ledger) -> Changes {
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
pub(crate) fn delete_late_records(context: &Context<'_>, ledger: &Ledger) -> Changes {
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

/// Changes and waits that must come before the engine may be started on the config that the debt names, if
/// any.
pub(crate) fn before_start(
    context: &Context<'_>,
    ledger: &Ledger,
    debt: &StartDebt,
    pod: &Pod,
    manager: &Manager,
) -> Option<Changes> {
    let frozen = debt.checksum.as_ref()?;
    if is_up(manager) {
        // A person has started it. Our start has no further effect then, and must not be refused.
        let any = || replace(debt, StartDebt { checksum: None, ..debt.clone() });
        return (manager.runs_on() != Some(frozen)).then(any);
    }
    match config_to_start_on(context, ledger, debt, frozen, pod, manager) {
        Ok(config) if config == frozen => None,
        Ok(config) => {
            // A start with another checksum is another request.
            let (checksum, sequence) = (Some(config.to_owned()), debt.sequence + SEQUENCE_GAP);
            Some(replace(debt, StartDebt { checksum, sequence, ..debt.clone() }))
        }
        Err(blocker) => {
            let mut changes = Changes::default();
            changes.block(&debt.pod_uid, blocker);
            Some(changes)
        }
    }
}

/// Checksum of the mounted config, if an engine that was to run on `frozen` may be started on it.
fn config_to_start_on<'m>(
    context: &Context<'_>,
    ledger: &Ledger,
    debt: &StartDebt,
    frozen: &str,
    pod: &Pod,
    manager: &'m Manager,
) -> Result<&'m str, Blocker> {
    let blocked = |code, message| Blocker { code, message };
    if let Some(restart) = ledger.restart.as_ref().filter(|one| goes_without(one, debt)) {
        let id = &restart.request.id;
        let message = format!("it is started after restart {id}, on the config of the others");
        return Err(blocked(Code::Debts, message));
    }
    let Some(mounted) = manager.mounted.as_deref() else {
        let message = "its manager does not know the mounted config";
        return Err(blocked(Code::ConfigUnknown, message.to_owned()));
    };
    if mounted == frozen {
        return Ok(mounted);
    }
    let expected = expected_now(pod, manager)?;
    if expected.is_some_and(|expected| expected != mounted) {
        return Err(blocked(Code::ConfigNotMounted, not_mounted(pod)));
    }
    match may_join(context, ledger, pod, frozen, mounted) {
        Ok(()) => Ok(mounted),
        Err(why) => Err(blocked(Code::NeedsCoordinated, needs_all(context, debt, frozen, &why))),
    }
}

/// True if the start can be sent as the ledger has it, given the mounted config: nothing else has to be
/// known.
pub(crate) fn is_due_on(ledger: &Ledger, debt: &StartDebt, manager: &Manager) -> bool {
    let is_mounted = debt.checksum == manager.mounted
        && !ledger.restart.as_ref().is_some_and(|restart| goes_without(restart, debt));
    debt.checksum.is_none() || is_mounted
}

/// True if a coordinated restart leaves this node out: the node is down because of an earlier one, and cannot
/// be started before this one has brought the others to another config. The node is started after that.
pub(crate) fn is_started_later(ledger: &Ledger, pod: &Pod, manager: &Manager) -> bool {
    let mut debts = ledger.debts.start.iter();
    debts.any(|debt| debt.pod_uid == pod.uid && is_held(debt, manager))
}

/// True if the engine is down, and the next request for it can only be the owed start, on a config that is
/// not mounted.
fn is_held(debt: &StartDebt, manager: &Manager) -> bool {
    let is_down = match manager.state {
        State::Stopped => manager.desired == Desired::Stopped,
        State::Failed => true,
        State::Starting | State::Running | State::Stopping | State::Killing => false,
        State::Stuck | State::Backoff => false,
    };
    let is_decided = manager.sequence >= debt.sequence && !was_refused(manager, debt.sequence);
    is_down && !is_decided && debt.checksum.is_some() && debt.checksum != manager.mounted
}

const fn is_up(manager: &Manager) -> bool {
    matches!(manager.state, State::Starting | State::Running)
        && matches!(manager.desired, Desired::Running)
}

/// True if this restart stops the other nodes together and has begun without the node of the debt, so that
/// nobody knows yet which config the others are going to run on.
fn goes_without(restart: &Restart, debt: &StartDebt) -> bool {
    let mut members = restart.members.iter();
    restart.is_coordinated()
        && restart.began.is_some()
        && !members.any(|one| one.pod_uid == debt.pod_uid && one.stop_sequence > 0)
}

/// Passes if a node that was to run on `frozen` can form one cluster with the others on `mounted`; or if that
/// is unknown, and all others run on the config of their sources, as this one would.
fn may_join(
    context: &Context<'_>,
    ledger: &Ledger,
    pod: &Pod,
    frozen: &str,
    mounted: &str,
) -> Result<(), String> {
    let unknown = match needs_coordinated_between(context, ledger, pod, frozen, mounted) {
        Ok(None) => return Ok(()),
        Ok(Some(change)) => return Err(change.sentence()),
        Err(blocker) => blocker,
    };
    if let Some(other) = silent_that_may_run(context, pod) {
        return Err(format!(
            "{}; {} may run on any config, and its manager does not answer{}",
            unknown.message,
            other.node,
            if_gone_for_good(context, other)
        ));
    }
    let is_of_configs = matches!(
        unknown.code,
        Code::PendingRestart | Code::ManagerUnreachable | Code::PodNotStarted
    );
    if is_of_configs && others_are_current(context, pod) { Ok(()) } else { Err(unknown.message) }
}

/// Another node whose manager is unreachable, and whose engine may still run. The engine is certainly down
/// only if the cluster answers and does not list the node; a pod that is being deleted proves nothing.
fn silent_that_may_run<'a>(context: &Context<'a>, pod: &Pod) -> Option<&'a Pod> {
    let may_run =
        |other: &Pod| context.index.engine().is_err() || context.index.node(&other.node).is_some();
    let mut others = context.index.pods().filter(|other| other.uid != pod.uid);
    others.find(|other| other.manager.is_err() && may_run(other))
}

/// True if all others that run do so on the config of their sources. A node whose manager is unreachable is
/// not in the cluster then: whatever config it comes back with meets the config of the others, also without
/// this node.
fn others_are_current(context: &Context<'_>, pod: &Pod) -> bool {
    let others = context.index.pods().filter(|other| other.uid != pod.uid);
    let mut known = others.filter_map(|other| Some((other, other.manager.as_ref().ok()?)));
    known.all(|(other, manager)| {
        !is_up(manager)
            || other.ignores_change
            || expected_now(other, manager)
                .is_ok_and(|expected| expected.as_ref() == manager.runs_on())
    })
}

/// Message about a node that waits for a coordinated restart, and what a person can do about it.
fn needs_all(context: &Context<'_>, debt: &StartDebt, frozen: &str, why: &str) -> String {
    let (namespace, name) = namespace_and_name(&context.snapshot.cluster.name);
    format!(
        "{} is down since a coordinated restart, was to be started on {}, and its sources have another \
         config now: {why}; put that config back, or bring all nodes to the new one: `kubectl stayput -n \
         {namespace} restart {name} --coordinated`",
        debt.node,
        short(frozen)
    )
}
