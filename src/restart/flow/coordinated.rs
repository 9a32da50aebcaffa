//! A coordinated restart: all nodes are stopped, then all are started. All members have the same direction:
//! until the first one has joined, the restart can turn back; after that it goes forward only, so that the
//! nodes never run on different configs.

pub(crate) mod start_all;
pub(crate) mod stop_all;
pub(crate) mod supersede;

use crate::changes::{Changes, Wait, Waits};
use crate::flow::begin::operator_hold::OperatorHold;
use crate::flow::begin::slot::begin;
use crate::flow::begin::{end_if_stuck, may_begin, may_begin_at_all, missing_finalizer};
use crate::flow::coordinated::start_all::{LimitLift, lift_limit};
use crate::flow::debts::is_started_later;
use crate::flow::member::bring_back::{compensation_for, set_back};
use crate::flow::member::replaced::before_its_turn;
use crate::flow::member::{changes_of, finish_member};
use crate::flow::observed::is_to_be_stopped;
use crate::flow::turn::TurnView;
use crate::ledger::RestartChange;
use crate::rules::StopImpact;
use crate::{
    Blocker, Code, Context, Direction, Ending, Ledger, Member, MemberStep, Outcome, Reason, Restart,
};

/// The name of the single flush of a coordinated restart.
const WHOLE_CLUSTER: &str = "*";

/// Members that still take part, with their places among all members.
fn active(restart: &Restart) -> impl Iterator<Item = (usize, &Member)> {
    let members = restart.members.iter().enumerate();
    members.filter(|(_, member)| member.step != MemberStep::Finished)
}

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
    let hold = OperatorHold::of(context, &restart.request);
    for (_, member) in active(restart) {
        let Some(pod) = context.index.pod(&member.pod_uid) else { continue };
        hold.check(pod)?;
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
        let view = &TurnView { context, ledger, restart, index, member };
        Some(changes_of(view, turn))
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
            let view = &TurnView { context, ledger, restart, index, member };
            begin(view, pod, manager, terms)
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
    let reason =
        "it is down; it is started after this restart (Degraded in status.conditions)".into();
    let ending = Ending { outcome: Outcome::Interfered, reason };
    let member = Box::new(member.clone().done(ending));
    Changes::of_ledger(RestartChange::SetMember { index, member })
}

/// The need of a coordinated restart for an engine with a master, to begin.
pub(crate) enum Master {
    Needed,
    /// Not decided yet: the changes that record since when there is no master, or that wait for one.
    Awaited(Box<Changes>),
    /// There has been no master for a phase, and the request allows an outage.
    Waived,
}

/// Decides if this restart needs an engine with a master to begin. The time without a master counts from the
/// plan that first found none, which is written to the ledger.
pub(crate) fn master(context: &Context<'_>, restart: &Restart) -> Master {
    let is_without = context.snapshot.no_master && context.index.engine().is_err();
    let (now, phase) = (context.snapshot.now, context.policy.phase_timeout);
    match restart.stuck_since {
        _ if !restart.request.allow_outage => Master::Needed,
        Some(_) if !is_without => {
            Master::Awaited(Box::new(Changes::of_ledger(RestartChange::SetStuck(None))))
        }
        None if !is_without => Master::Needed,
        None => Master::Awaited(Box::new(Changes::of_ledger(RestartChange::SetStuck(Some(now))))),
        Some(since) if now.since(since) >= phase => Master::Waived,
        Some(since) => {
            let mut changes = Changes::default();
            let message = format!(
                "the engines run and have no master; if none is elected until {}, all nodes are \
                 restarted without one",
                since.plus(phase)
            );
            for (_, member) in active(restart) {
                changes.wait(&member.pod_uid, Code::EngineUnreachable, message.clone());
            }
            changes.wait_all(Code::EngineUnreachable, message);
            Master::Awaited(Box::new(changes))
        }
    }
}

/// Restores allocation; then all members are finished in one write. An engine that does not take the setting
/// within a phase is not waited for: the debt stays.
pub(crate) fn complete(context: &Context<'_>, ledger: &Ledger, restart: &Restart) -> Changes {
    let mut changes = Changes::default();
    let is_late = restart.is_late_forward(context.snapshot.now, context.policy.phase_timeout);
    match lift_limit(context, ledger) {
        Ok(LimitLift::Restore(_)) | Err(_) if is_late => {}
        Err(blocker) => {
            changes.wait_all(blocker.code, blocker.message);
            return changes;
        }
        Ok(LimitLift::Restore(action)) => {
            changes.act(action);
            let message = "allocation is being restored";
            changes.wait_all(Code::RestoringAllocation, message);
            return changes;
        }
        Ok(LimitLift::Release(change)) => changes.change(change),
        Ok(LimitLift::Done) => {}
    }
    for (index, member) in active(restart) {
        let view = &TurnView { context, ledger, restart, index, member };
        changes.merge(finish_member(view, Ending::done()));
    }
    changes
}

/// Turns all members back, to the last good config where there is one. `waits`: the reasons to wait of the
/// step that failed; its other changes are dropped.
pub(crate) fn revert_config(
    context: &Context<'_>,
    restart: &Restart,
    reason: &str,
    waits: Waits,
) -> Changes {
    let mut changes = Changes::from(waits);
    let mut outcome = Outcome::RolledBack;
    for (index, member) in active(restart) {
        let manager = context.index.manager(&member.pod_uid).ok();
        let compensation = compensation_for(member, manager, true, false);
        let (own, back) = set_back(context, index, member, compensation, reason);
        if own != Outcome::RolledBack {
            outcome = own;
        }
        changes.change(back);
    }
    changes.change(RestartChange::SetDirection(Direction::Back));
    changes.event(None, Reason::RestartAborted, format!("Reverting every node: {reason}"));
    changes.end_with(outcome, reason);
    changes
}
