//! Members whose manager is unreachable, or whose pod is not listed. The allocation limit for their stop must
//! not wait for that: copies that are lost meanwhile, also their own, come back elsewhere.

use super::last_check::why_not;
use super::{start, update};
use crate::context::Context;
use crate::flow::engine::allocation;
use crate::flow::observed::{is_over_time, lists_old_process};
use crate::flow::turn::{GiveBack, Turn};
use crate::{Blocker, Ledger, Member, Pod, Restart};

/// The next step of a member whose manager is unreachable, for the reason `unknown`.
pub(super) fn without_manager(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    member: &Member,
    pod: &Pod,
    unknown: Blocker,
) -> Turn {
    if let Some(turn) = start::ended_since(member, pod, || unknown.message.clone()) {
        return turn;
    }
    if let Some(why) = gives_back(context, ledger, restart, member, Some(pod)) {
        return Turn::GiveBack(why);
    }
    until_limit_lifted(
        context,
        ledger,
        member,
        update::without_manager(context, member, pod, unknown),
    )
}

/// Reason why a member that was not stopped, as far as is known, gives its slot back. If its stop has arrived
/// all the same, its manager says so later, and the member is started as planned.
pub(super) fn gives_back(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    member: &Member,
    pod: Option<&Pod>,
) -> Option<GiveBack> {
    if restart.ending.is_some() || !lists_old_process(context, member) {
        return None;
    }
    if let Some(why) = GiveBack::if_held(context, &restart.request) {
        return Some(why);
    }
    let pod = pod.filter(|pod| !context.failed_sets().whole_set_failed(pod))?;
    if !allocation::is_limited_for(context, ledger, member) {
        return None;
    }
    let blocker = why_not(context, ledger, restart, pod, is_over_time(context, member, 1))?;
    Some(GiveBack { reason: blocker.message, by_rule: true })
}

/// The turn itself; or, if it waits and the member no longer needs limited allocation, a turn that restores
/// allocation first.
pub(super) fn until_limit_lifted(
    context: &Context<'_>,
    ledger: &Ledger,
    member: &Member,
    turn: Turn,
) -> Turn {
    if !matches!(turn, Turn::Wait(_)) || allocation::is_needed(context, member) {
        return turn;
    }
    allocation::lift_limit(context, ledger, member).err().unwrap_or(turn)
}
