//! Every member gets its slot, all in one write; if one is blocked, no member gets one.

use super::active;
use super::without_master::{Master, master};
use crate::changes::{Changes, Wait, Waits};
use crate::context::Context;
use crate::flow::begin::may_begin::{may_begin, may_begin_at_all, missing_finalizer};
use crate::flow::begin::slot::begin;
use crate::flow::begin::stuck::end_if_stuck;
use crate::flow::debts::is_started_later;
use crate::flow::member::{changes_of, replaced::before_its_turn};
use crate::flow::observed::is_to_be_stopped;
use crate::ledger::RestartChange;
use crate::rules::StopImpact;
use crate::{Blocker, Code, Ending, Ledger, Member, Outcome, Restart};

/// Gives every member its slot. A restart that the reconciler requested itself ends if that is impossible for
/// too long.
pub(crate) fn begin_all(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let Some(restart) = ledger.restart.as_ref().filter(|restart| restart.ending.is_none()) else {
        return Changes::default();
    };
    let mut changes = give_slots(context, ledger, restart);
    changes.merge(end_if_stuck(context, restart, &changes));
    changes
}

fn give_slots(context: &Context<'_>, ledger: &Ledger, restart: &Restart) -> Changes {
    let master = master(context, restart);
    let may_begin = match master {
        Master::Needed => may_begin(context, ledger, restart),
        Master::Awaited(_) | Master::Waived => may_begin_at_all(context, ledger, restart),
    };
    if let Err(blocker) = may_begin.and_then(|()| may_begin_each(context, ledger, restart)) {
        let mut waits = vec![Wait::cluster(blocker.code, blocker.message.clone())];
        let members = active(restart);
        waits.extend(members.map(|(_, member)| Wait::pod(&member.pod_uid, blocker.clone())));
        return waits.into();
    }
    if let Some(action) = missing_finalizer(context) {
        return Changes::action(action);
    }
    if let Master::Awaited(change) = master {
        return *change;
    }
    let without_engine = matches!(master, Master::Waived);
    let terms = StopImpact { without_engine, ..StopImpact::default() };
    replace_pods(context, ledger, restart).unwrap_or_else(|| {
        begin_each(context, ledger, restart, &terms).unwrap_or_else(Changes::from)
    })
}

fn may_begin_each(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
) -> Result<(), Blocker> {
    for (_, member) in active(restart) {
        let Some(pod) = context.index.pod(&member.pod_uid) else { continue };
        let manager = context.index.manager(&pod.uid);
        if manager.is_ok_and(|manager| is_started_later(ledger, pod, manager)) {
            continue;
        }
        context.preflight(pod).map_err(|blocker| Blocker {
            message: format!("{}: {}", pod.node, blocker.message),
            ..blocker
        })?;
        // Otherwise our own start would be mistaken for another client's.
        let is_kept = ledger.kept_stopped.iter().any(|kept| kept.pod_uid == pod.uid);
        if is_kept && !is_to_be_stopped(context, pod) {
            let message = format!("{} is started first: it was kept stopped until now", pod.node);
            return Err(Blocker { code: Code::KeptStopped, message });
        }
    }
    Ok(())
}

/// Changes for the members whose pods are not listed, or are listed again, if there are any.
fn replace_pods(context: &Context<'_>, ledger: &Ledger, restart: &Restart) -> Option<Changes> {
    let turns = active(restart).filter_map(|(index, member)| {
        let turn = before_its_turn(context, member).err()?;
        Some(changes_of(context, ledger, index, member, turn))
    });
    turns.reduce(|mut all, changes| {
        all.merge(changes);
        all
    })
}

/// Slots for all members, or the reason of the first member that cannot get one.
fn begin_each(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    terms: &StopImpact,
) -> Result<Changes, Waits> {
    let mut changes = Changes::default();
    for (index, member) in active(restart) {
        let uid = &member.pod_uid;
        let Some(pod) = context.index.pod(uid) else { continue };
        let begun = context.index.manager(uid).and_then(|manager| {
            if is_started_later(ledger, pod, manager) {
                return Ok(leave_out(index, member));
            }
            begin(context, ledger, restart, index, pod, manager, terms)
        });
        changes.merge(begun.map_err(|blocker| vec![Wait::pod(uid, blocker)])?);
    }
    if terms.without_engine {
        changes.change(RestartChange::SetStuck(None));
    }
    Ok(changes)
}

/// Ends the part of a node whose start is owed: the node is started after this restart.
fn leave_out(index: usize, member: &Member) -> Changes {
    let reason = "it is down; it is started after this restart (status.debts)".into();
    let ending = Ending { outcome: Outcome::Interfered, reason };
    let member = Box::new(member.clone().done(ending));
    Changes::of_ledger(RestartChange::SetMember { index, member })
}
