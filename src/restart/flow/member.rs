//! The steps of one member in a rolling or immediate restart: stopped, started, proven back; or aborted; or
//! its slot is given back before the stop.
//!
//! The allocation limit for a stop must not wait for an unreachable manager or a pod that is not listed:
//! copies that are lost meanwhile come back elsewhere. A node that is back keeps its slot for a moment
//! while shards recover: mostly the next node waits only for that.

pub(crate) mod bring_back;
pub(crate) mod give_back;
pub(crate) mod replaced;
pub(crate) mod start;
pub(crate) mod stop;
pub(crate) mod update;

use crate::changes::Changes;
use crate::flow::answers::{is_overtaken, overtaken, start_above};
use crate::flow::engine::{is_limited_for, lift_limit, needs_limit, record, settle};
use crate::flow::member::bring_back::abort;
use crate::flow::member::give_back::why_not;
use crate::flow::member::replaced::needs_no_turn;
use crate::flow::member::update::kept_heap;
use crate::flow::observed::{is_over_time, lists_old_process};
use crate::flow::requests::drift;
use crate::flow::turn::{GiveBack, Turn, TurnView};
use crate::ledger::RestartChange;
use crate::{
    Blocker, Code, Color, Context, Disabled, Ending, Health, Ledger, Manager, Member, MemberStep,
    Outcome, Pod, Predicate, Reason, Restart, Strategy,
};

/// The next step of a member; `restart` is as it was before all members' steps.
pub(crate) fn advance_member(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    index: usize,
    member: &Member,
) -> Changes {
    let view = &TurnView { context, ledger, restart, index, member };
    let turn = match member.step {
        MemberStep::Finished => return Changes::default(),
        MemberStep::Scheduled => match before_its_turn(view) {
            Some(turn) => turn,
            None => return Changes::default(),
        },
        MemberStep::Restarting => restart_member(view),
        MemberStep::GivingBack => give_back::give_back(view),
        MemberStep::Aborting => bring_back::bring_back(view),
    };
    changes_of(view, turn)
}

/// The turn of a member before its slot, if any: its pod is not listed or was replaced, it needs no restart
/// any more, or it is left out.
fn before_its_turn(view: &TurnView<'_, '_>) -> Option<Turn> {
    let TurnView { context, ledger, restart, member, .. } = *view;
    let pod = match replaced::before_its_turn(context, member) {
        Ok(pod) => pod,
        Err(turn) => return Some(turn),
    };
    if let Some(ending) = needs_no_turn(context, restart, pod) {
        return Some(Turn::finish(ending));
    }
    let reason = if update::is_for_updates(restart) {
        update::why_left_out(context, ledger, pod)?
    } else {
        drift::why_left_out(restart, pod)?
    };
    Some(Turn::finish(Ending { outcome: Outcome::Interfered, reason: reason.to_owned() }))
}

/// The changes that follow from a member's turn.
pub(crate) fn changes_of(view: &TurnView<'_, '_>, turn: Turn) -> Changes {
    let TurnView { context, index, member, .. } = *view;
    // The reason is shown on the pod that is there now: a pod that was replaced is not listed any more.
    let pod = context.index.successor(member).map_or(&member.pod_uid, |pod| &pod.uid);
    match turn {
        Turn::Wait(blocker) => {
            let mut changes = Changes::default();
            changes.block(pod, blocker);
            changes
        }
        Turn::Act(mut changes, blocker) => {
            if let Some(blocker) = blocker {
                changes.block(pod, blocker);
            }
            *changes
        }
        Turn::Change(member, mut changes) => {
            changes.change(RestartChange::SetMember { index, member });
            *changes
        }
        Turn::GiveBack(why) => give_back::begin(context, index, member, &why),
        Turn::Abort(reason) => abort(view, &reason),
        Turn::Finish(ending, mut changes) => {
            changes.merge(finish_member(view, ending));
            *changes
        }
    }
}

/// The next step of a member that may be stopped and started.
fn restart_member(view: &TurnView<'_, '_>) -> Turn {
    let TurnView { context, member, .. } = *view;
    let Some(pod) = context.index.pod(&member.pod_uid) else {
        return replaced::in_its_turn(view);
    };
    let manager = match context.index.manager(&member.pod_uid) {
        Ok(manager) => manager,
        Err(blocker) => {
            return without_manager(view, pod, blocker);
        }
    };
    if is_overtaken(manager, member) {
        return overtaken(manager, member);
    }
    if manager.sequence > member.start_sequence {
        // The other request was refused, but the manager now accepts only sequences above our
        // start.
        let mut above = member.clone();
        above.start_sequence = start_above(member, manager.sequence);
        return Turn::change(above);
    }
    if manager.sequence < member.stop_sequence {
        return stop::stop(view, pod, manager);
    }
    let turn = if manager.sequence == member.start_sequence {
        start::prove(view, pod, manager)
    } else {
        start::start(view, pod, manager)
    };
    record::tell_lost_record(view, turn)
}

/// The next step of a member whose manager is unreachable, for the reason `unknown`.
pub(crate) fn without_manager(view: &TurnView<'_, '_>, pod: &Pod, unknown: Blocker) -> Turn {
    let TurnView { member, .. } = *view;
    if start::was_proven(member, pod) {
        return start::done_until(&unknown.message);
    }
    if let Some(why) = gives_back(view, Some(pod)) {
        return Turn::GiveBack(why);
    }
    until_limit_lifted(view, update::without_manager(view, pod, unknown))
}

/// Reason why a member that was not stopped, as far as is known, gives its slot back. If its stop has arrived
/// all the same, its manager says so later, and the member is started as planned.
pub(crate) fn gives_back(view: &TurnView<'_, '_>, pod: Option<&Pod>) -> Option<GiveBack> {
    let TurnView { context, restart, member, .. } = *view;
    if restart.ending.is_some() || !lists_old_process(context, member) {
        return None;
    }
    if let Some(why) = GiveBack::if_held(context, &restart.request) {
        return Some(why);
    }
    let pod = pod.filter(|pod| !context.failed_sets().whole_set_failed(pod))?;
    if !is_limited_for(view) {
        return None;
    }
    let blocker = why_not(view, pod, is_over_time(context, member, 1))?;
    Some(GiveBack { reason: blocker.message, by_rule: true })
}

/// The turn itself; or, if it waits and the member no longer needs limited allocation, a turn that restores
/// allocation first.
pub(crate) fn until_limit_lifted(view: &TurnView<'_, '_>, turn: Turn) -> Turn {
    if !matches!(turn, Turn::Wait(_)) || needs_limit(view.context, view.member) {
        return turn;
    }
    lift_limit(view).err().unwrap_or(turn)
}

/// Finishes a member, and settles its debts.
pub(crate) fn finish_member(view: &TurnView<'_, '_>, ending: Ending) -> Changes {
    let TurnView { context, ledger, index, member, .. } = *view;
    let uid = &member.pod_uid;
    let mut changes = Changes::default();
    changes.ledger.extend(settle(context, ledger, uid));
    let (reason, message) = match ending.outcome {
        Outcome::Done if ending.reason.is_empty() => {
            (Reason::NodeRestarted, format!("{} is back", member.node))
        }
        Outcome::Done => {
            (Reason::NodeRestarted, format!("{} is done: {}", member.node, ending.reason))
        }
        Outcome::Aborted | Outcome::RolledBack | Outcome::Interfered | Outcome::Superseded => (
            Reason::NodeRestartAborted,
            format!("{} ended as {}: {}", member.node, ending.outcome.as_str(), ending.reason),
        ),
    };
    changes.event(Some(uid), reason, message);
    if ending.outcome == Outcome::Done
        && let Some(kept) = kept_heap(context, member)
    {
        changes.event(Some(uid), Reason::HeapUnchanged, kept);
    }
    let all = ledger.restart.as_ref().is_some_and(Restart::is_coordinated);
    // A member that only waited is left out alone, unless the restart needs all of its nodes.
    if ending.outcome != Outcome::Done && (all || member.step != MemberStep::Scheduled) {
        changes.end_with(ending.outcome, format!("{}: {}", member.node, ending.reason));
    }
    let finished = match ending.outcome {
        Outcome::Done => member.clone().done(ending),
        Outcome::Aborted | Outcome::RolledBack | Outcome::Interfered | Outcome::Superseded => {
            Member {
                step: MemberStep::Finished,
                compensation: None,
                ending: Some(ending),
                ..member.clone()
            }
        }
    };
    changes.set_member(index, finished);
    changes
}

/// Longest wait for recovering shards, in milliseconds from when the node is ready: a large recovery is not
/// waited for, since people would look at a node that is back and counts as under way.
const LONGEST_RECOVERY: u64 = 5_000;

/// Passes once no shard recovers, if nothing is gained by waiting for that, or after [`LONGEST_RECOVERY`].
pub(crate) fn until_recovered(view: &TurnView<'_, '_>, manager: &Manager) -> Result<(), Turn> {
    let TurnView { context, restart, .. } = *view;
    let Some(left) = left(context, manager) else { return Ok(()) };
    if !another_waits_for_green(&context.policy.disabled, restart) || !recovers(context) {
        return Ok(());
    }
    let message = "it is back; its shards recover, and the next node waits for that".to_owned();
    let blocker = Blocker { code: Code::Recovering, message };
    let changes = Changes { requeue: Some(left), ..Changes::default() };
    Err(Turn::Act(Box::new(changes), Some(blocker)))
}

/// Time that the node may still wait, in milliseconds.
fn left(context: &Context<'_>, manager: &Manager) -> Option<u64> {
    let waited = context.snapshot.now.since(manager.ready_since?);
    LONGEST_RECOVERY.checked_sub(waited).filter(|left| *left > 0)
}

/// True if a node of the same restart still needs a slot, and gets it only in a green or settled cluster.
fn another_waits_for_green(disabled: &Disabled, restart: &Restart) -> bool {
    restart.request.strategy == Strategy::Rolling
        && restart.ending.is_none()
        && restart.has_scheduled()
        && !disabled.clone().with_restart(Some(restart)).contains(Predicate::Yellow)
}

fn recovers(context: &Context<'_>) -> bool {
    let health = context.index.engine().ok().and_then(|engine| engine.health.as_ref().ok());
    let moves = |health: &Health| {
        health.initializing + health.delayed + health.in_flight_fetch > 0 || health.timed_out
    };
    health.is_some_and(|health| health.color == Color::Yellow && moves(health))
}
