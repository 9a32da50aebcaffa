//! Changes on the engine before a stop, and how they are undone afterwards: votes, shutdown records, and the
//! allocation setting, with a marker beside it in the same request.

pub(crate) mod record;
pub(crate) mod voting;

use crate::changes::{Changes, Check, refuse};
use crate::flow::observed::is_over_time;
use crate::flow::turn::{Turn, TurnView};
use crate::ledger::LedgerChange;
use crate::{
    Action, Allocation, AllocationBefore, AllocationDebt, Blocker, Code, Color, Context, Engine,
    Ledger, Marker, Member, MemberStep, Reason, RecordDebt, Strategy, late_requests,
};

/// Prepares the engine for a stop of this member; passes once that is complete.
pub(crate) fn prepare(view: &TurnView<'_, '_>) -> Result<(), Turn> {
    let TurnView { context, ledger, member, .. } = *view;
    record::announce(view)?;
    limit_allocation(view)?;
    match (context.index.engine(), &member.node_id) {
        // Another client may have announced a restart at the same time as we did.
        (Ok(engine), Some(node_id)) => Ok(record::is_alone(context, engine, ledger, node_id)?),
        (Ok(_), None) | (Err(_), _) => Ok(()),
    }
}

/// True if a flush is still due before a stop of this node, or of all (`*`). With a primary missing no flush
/// is due: an engine lets the flush wait for that primary for a minute, and the stop flushes the shards of
/// the node itself.
pub(crate) fn is_to_be_flushed(context: &Context<'_>, node: &str) -> bool {
    let Ok(engine) = context.index.engine() else { return false };
    let is_red = engine.health.as_ref().is_ok_and(|health| health.color == Color::Red);
    !is_red && !context.snapshot.flushed.contains(node)
}

/// Undoes our changes on the engine for this member, once the node is proven back or at the end of a
/// compensation; passes when none is left.
pub(crate) fn clean_up(view: &TurnView<'_, '_>) -> Result<(), Turn> {
    voting::vote_again(view)?;
    record::withdraw(view)?;
    lift_limit(view)
}

/// The ledger changes of a member that no longer holds a slot: what it owed is released, or owed by nobody.
pub(crate) fn settle(context: &Context<'_>, ledger: &Ledger, uid: &str) -> Vec<LedgerChange> {
    let mut changes = Vec::from_iter(release_allocation(context, ledger, uid));
    changes.extend(record::settle(context, ledger, uid));
    changes.extend(voting::settle(context, ledger, uid));
    changes
}

/// The value we set: primaries are still allocated, replicas are not.
const OURS: &str = "primaries";

/// Rank of a value by how much it allows, from 0 (nothing) to 3 (all), in upper or lower case, as engines
/// read it; an unknown value counts as the one that allows all.
fn permissiveness(value: Option<&str>) -> u8 {
    match value.map(str::to_ascii_lowercase).as_deref() {
        Some("none") => 0,
        Some("new_primaries") => 1,
        Some(OURS) => 2,
        Some(_) | None => 3,
    }
}

/// The value in force: the transient one, else the persistent one.
fn in_force(setting: &AllocationBefore) -> Option<&str> {
    setting.transient.as_deref().or(setting.persistent.as_deref())
}

/// True if allocation is limited to primaries or less.
pub(crate) fn is_tight(allocation: &Allocation) -> bool {
    permissiveness(in_force(&allocation.setting)) <= permissiveness(Some(OURS))
}

/// The values to restore. A value that another client has set beside ours, or in its place, stays.
fn set_back(now: &AllocationBefore, before: &AllocationBefore) -> AllocationBefore {
    let ours = |value: &Option<String>| value.as_deref() == Some(OURS);
    let persistent = if ours(&now.persistent) { &before.persistent } else { &now.persistent };
    // The transient setting is restored only if there was one.
    let transient = if before.transient.is_some() && ours(&now.transient) {
        &before.transient
    } else {
        &now.transient
    };
    AllocationBefore { persistent: persistent.clone(), transient: transient.clone() }
}

/// The debt of a member that takes its slot: a shutdown record or an allocation limit that must be undone
/// later, if any.
pub(crate) fn owe_protection(
    context: &Context<'_>,
    ledger: &Ledger,
    restart_id: &str,
    strategy: Strategy,
    member: &Member,
    engine: &Engine,
) -> Result<Option<LedgerChange>, Blocker> {
    let records = engine.records.as_ref().map_err(Blocker::engine_unreachable)?;
    if let (Some(_), Some(node_id), Strategy::Immediate | Strategy::Rolling) =
        (records, &member.node_id, strategy)
    {
        if let Ok(Allocation { marker: Some(marker), .. }) = &engine.allocation {
            not_of_another(context, marker)?;
        }
        record::is_alone(context, engine, ledger, node_id)?;
        if !record::is_deleted_by_operator(context, member) {
            return Ok(Some(LedgerChange::AddRecordDebt(RecordDebt {
                node_id: node_id.clone(),
                node: member.node.clone(),
                pod_uid: member.pod_uid.clone(),
                restart: restart_id.to_owned(),
            })));
        }
    }
    let allocation = engine.allocation.as_ref().map_err(Blocker::engine_unreachable)?;
    let holders = vec![member.pod_uid.clone()];
    let debt = match &ledger.debts.allocation {
        Some(AllocationDebt { restart, before, .. }) => {
            Some(AllocationDebt { restart: restart.clone(), before: before.clone(), holders })
        }
        None => allocation_debt(context, restart_id, allocation, holders)?,
    };
    Ok(debt.map(LedgerChange::HoldAllocation))
}

/// The allocation debt, unless allocation is already limited enough.
pub(crate) fn allocation_debt(
    context: &Context<'_>,
    restart_id: &str,
    allocation: &Allocation,
    holders: Vec<String>,
) -> Result<Option<AllocationDebt>, Blocker> {
    if allocation.marker.is_none() && is_tight(allocation) {
        return Ok(None);
    }
    let before = match &allocation.marker {
        Some(marker) => {
            not_of_another(context, marker)?;
            marker.before.clone()
        }
        None => allocation.setting.clone(),
    };
    Ok(Some(AllocationDebt { restart: restart_id.to_owned(), before, holders }))
}

fn not_of_another(context: &Context<'_>, marker: &Marker) -> Check {
    if is_ours(context, marker) {
        return Ok(());
    }
    let message = format!("the SearchCluster {} restarts nodes of this engine now", marker.cluster);
    refuse(Code::ForeignController, message)
}

/// Limits allocation if the ledger has a debt for it that this member holds.
pub(crate) fn limit_allocation(view: &TurnView<'_, '_>) -> Result<(), Turn> {
    let TurnView { context, ledger, member, .. } = *view;
    let Some(debt) = &ledger.debts.allocation else { return Ok(()) };
    if !debt.holders.contains(&member.pod_uid) {
        return Ok(());
    }
    let ours = Marker {
        cluster: context.snapshot.cluster.name.clone(),
        restart: debt.restart.clone(),
        before: debt.before.clone(),
    };
    let allocation = context.index.allocation()?;
    Err(match &allocation.marker {
        Some(marker) if !is_ours(context, marker) => return Ok(not_of_another(context, marker)?),
        // A request of an earlier restart that has arrived late.
        Some(marker) if marker.restart != ours.restart => Turn::act_and_wait(
            undo(allocation, marker),
            Code::RestoringAllocation,
            format!("allocation has the marker of an earlier restart ({})", marker.restart),
        ),
        Some(_) if is_tight(allocation) => return Ok(()),
        Some(_) => {
            let message = format!(
                "another client set cluster.routing.allocation.enable back to {} while we hold it at \
                 {OURS}; pause the other controller (ECK: eck.k8s.elastic.co/pause-orchestration=true on \
                 the Elasticsearch resource; before ECK 3.5 eck.k8s.elastic.co/managed=false)",
                in_force(&allocation.setting).unwrap_or("its default")
            );
            let mut changes = Changes::default();
            changes.event(None, Reason::ForeignController, message.clone());
            let blocker = Blocker { code: Code::ForeignController, message };
            Turn::Act(Box::new(changes), Some(blocker))
        }
        // Somebody has limited allocation since the slot was taken: our value would allow more.
        None if is_tight(allocation) => return Ok(()),
        None => Turn::act_and_wait(
            Action::TightenAllocation { value: OURS.into(), marker: ours },
            Code::Preparing,
            "allocation is being limited to primaries",
        ),
    })
}

/// True if we have limited allocation, for this member too.
pub(crate) fn is_limited_for(view: &TurnView<'_, '_>) -> bool {
    let TurnView { context, ledger, member, .. } = *view;
    let debt = ledger.debts.allocation.as_ref();
    debt.is_some_and(|debt| debt.holders.contains(&member.pod_uid))
        && context.index.allocation().is_ok_and(|allocation| allocation.marker.is_some())
}

/// True if allocation must stay limited for this member, one of those that it is limited for. An unreachable
/// manager may answer again soon, and its engine may be stopped, but this counts for one phase only. A member
/// that is brought back needs no limit while its manager is unreachable, unless its container is recreated.
pub(crate) fn needs_limit(context: &Context<'_>, member: &Member) -> bool {
    let uid = context.index.successor(member).map_or(&member.pod_uid, |pod| &pod.uid);
    let answers = context.index.manager(uid).is_ok();
    let is_remade = member.update.as_ref().is_some_and(|fixed| fixed.update.makes_a_container());
    match member.step {
        MemberStep::Scheduled | MemberStep::GivingBack | MemberStep::Finished => false,
        MemberStep::Restarting => answers || !is_over_time(context, member, 1),
        MemberStep::Aborting => answers || is_remade,
    }
}

/// Restores allocation if no other member needs the limit.
pub(crate) fn lift_limit(view: &TurnView<'_, '_>) -> Result<(), Turn> {
    let TurnView { context, ledger, member, .. } = *view;
    let Some(debt) = &ledger.debts.allocation else { return Ok(()) };
    let mut others = ledger.under_way().filter(|other| other.pod_uid != member.pod_uid);
    if others.any(|other| needs_limit(context, other) && debt.holders.contains(&other.pod_uid)) {
        return Ok(());
    }
    match restore_allocation(context, context.index.allocation()?) {
        None => Ok(()),
        Some(action) => Err(Turn::act_and_wait(
            action,
            Code::RestoringAllocation,
            "allocation is being restored",
        )),
    }
}

/// The action that restores allocation, if its marker is ours.
pub(crate) fn restore_allocation(context: &Context<'_>, allocation: &Allocation) -> Option<Action> {
    let marker = allocation.marker.as_ref().filter(|marker| is_ours(context, marker))?;
    Some(undo(allocation, marker))
}

/// The action that removes a marker and restores the values beside it.
fn undo(allocation: &Allocation, marker: &Marker) -> Action {
    Action::RestoreAllocation { before: set_back(&allocation.setting, &marker.before) }
}

/// Message about a limit that stays, for people: the marker of the debt is gone while allocation is as we set
/// it. Without the marker it may as well be a person's own setting.
pub(crate) fn limit_left_behind(allocation: &Allocation, debt: &AllocationDebt) -> Option<String> {
    if allocation.marker.is_some()
        || set_back(&allocation.setting, &debt.before) == allocation.setting
    {
        return None;
    }
    let shown = |setting: &AllocationBefore| in_force(setting).unwrap_or("unset").to_owned();
    Some(format!(
        "cluster.routing.allocation.enable is still {} and its marker is gone, so it is not restored; \
         before restart {} it was {}: set it yourself (runbook: allocation)",
        shown(&allocation.setting),
        debt.restart,
        shown(&debt.before)
    ))
}

/// The ledger change of a finished member, which no longer holds allocation. If no member holds it, and it
/// was restored already or never set, the debt is gone.
fn release_allocation(context: &Context<'_>, ledger: &Ledger, uid: &str) -> Option<LedgerChange> {
    let debt = ledger.debts.allocation.as_ref()?;
    let is_restored = context.index.allocation().is_ok_and(|allocation| {
        allocation.marker.as_ref().is_none_or(|marker| marker.restart != debt.restart)
            && limit_left_behind(allocation, debt).is_none()
    });
    Some(LedgerChange::ReleaseAllocation { pod_uids: vec![uid.to_owned()], is_restored })
}

/// True if a marker was set for this SearchCluster.
fn is_ours(context: &Context<'_>, marker: &Marker) -> bool {
    late_requests::is_ours(marker, &context.snapshot.cluster.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tighter_value_of_a_person_is_known_in_any_case() {
        let is_tight = |persistent: Option<&str>, transient: Option<&str>| {
            let own = |value: Option<&str>| value.map(str::to_owned);
            let setting =
                AllocationBefore { persistent: own(persistent), transient: own(transient) };
            is_tight(&Allocation { setting, ..Allocation::default() })
        };
        for value in ["none", "NONE", "New_Primaries", "PRIMARIES"] {
            assert!(is_tight(Some(value), None) && is_tight(Some("all"), Some(value)), "{value}");
        }
        for value in ["all", "ALL", "some"] {
            assert!(!is_tight(Some(value), None), "{value}");
        }
    }
}
