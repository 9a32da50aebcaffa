//! The steps of one member in a rolling or immediate restart: stopped, started, proven back; or
//! aborted; or its slot is given back before the stop.

pub(super) mod abort;
pub(super) mod bring_back;
pub(super) mod compensation;
pub(super) mod deleted;
pub(super) mod finish;
pub(super) mod give_back;
mod last_check;
pub(super) mod mounted;
mod recovered;
pub(super) mod replaced;
pub(super) mod restarted;
pub(super) mod start;
pub(super) mod stop;
mod unreachable_manager;
pub(super) mod update;

use super::answers::{is_overtaken, overtaken, start_above};
use super::turn::Turn;
use crate::changes::Changes;
use crate::context::Context;
use crate::flow::engine::record;
use crate::flow::requests::drift;
use crate::ledger::RestartChange;
use crate::{Ending, Ledger, Member, MemberStep, Outcome, Restart};

/// The next step of a member; `restart` is as it was before all members' steps.
pub(super) fn advance_member(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    index: usize,
    member: &Member,
) -> Changes {
    let turn = match member.step {
        MemberStep::Finished => return Changes::default(),
        MemberStep::Scheduled => match before_its_turn(context, ledger, restart, member) {
            Some(turn) => turn,
            None => return Changes::default(),
        },
        MemberStep::Restarting => restart_member(context, ledger, restart, member),
        MemberStep::GivingBack => give_back::give_back(context, ledger, member),
        MemberStep::Aborting => bring_back::bring_back(context, ledger, member),
    };
    changes_of(context, ledger, index, member, turn)
}

/// The turn of a member before its slot, if any: its pod is not listed or was replaced, it needs no restart
/// any more, or it is left out.
fn before_its_turn(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    member: &Member,
) -> Option<Turn> {
    let pod = match replaced::before_its_turn(context, member) {
        Ok(pod) => pod,
        Err(turn) => return Some(turn),
    };
    if let Some(ending) = restarted::needs_no_turn(context, restart, pod) {
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
pub(super) fn changes_of(
    context: &Context<'_>,
    ledger: &Ledger,
    index: usize,
    member: &Member,
    turn: Turn,
) -> Changes {
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
        Turn::Abort(reason) => abort::abort(context, index, member, &reason),
        Turn::Finish(ending, mut changes) => {
            changes.merge(finish::finish_member(context, ledger, index, member, ending));
            *changes
        }
    }
}

/// The next step of a member that may be stopped and started.
fn restart_member(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    member: &Member,
) -> Turn {
    let Some(pod) = context.index.pod(&member.pod_uid) else {
        return replaced::in_its_turn(context, ledger, restart, member);
    };
    let manager = match context.index.manager(&member.pod_uid) {
        Ok(manager) => manager,
        Err(blocker) => {
            return unreachable_manager::without_manager(
                context, ledger, restart, member, pod, blocker,
            );
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
        return stop::stop(context, ledger, restart, member, pod, manager);
    }
    let turn = if manager.sequence == member.start_sequence {
        start::prove(context, ledger, restart, member, pod, manager)
    } else {
        start::start(context, ledger, member, pod, manager)
    };
    record::tell_lost_record(context, ledger, member, turn)
}
