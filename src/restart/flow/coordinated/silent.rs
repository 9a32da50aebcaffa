//! A restart that only goes forward does not wait without end for a manager that does not answer: its
//! Kubernetes node may be gone for good, and its pod is listed all the same.

use crate::context::Context;
use crate::flow::member::bring_back::owe_start_of_gone;
use crate::flow::observed::{if_gone_for_good, is_over_time};
use crate::flow::turn::Turn;
use crate::{Blocker, Member, Pod};

/// A member whose manager does not answer, in a restart that only goes forward. Once its time is over, it has
/// one more phase, from the first look that finds it silent; then its start is a debt. `may_run`: its engine
/// may run on another config than the others are going to.
pub(super) fn without_manager(
    context: &Context<'_>,
    member: &Member,
    pod: &Pod,
    unknown: Blocker,
    may_run: bool,
) -> Turn {
    if !is_over_time(context, member, 1) {
        return Turn::Wait(unknown);
    }
    let (now, phase) = (context.snapshot.now, context.policy.phase_timeout);
    let message = unknown.message;
    match member.silent_since {
        None => Turn::change(Member { silent_since: Some(now), ..member.clone() }),
        Some(since) if now.since(since) >= phase && !may_run => {
            owe_start_of_gone(context, member, &format!("no answer in time: {message}"))
        }
        Some(_) => Turn::Wait(Blocker {
            code: unknown.code,
            message: format!("{message}{}", if_gone_for_good(context, pod)),
        }),
    }
}

/// Passes once the ledger no longer says that the manager, which answers, is silent.
pub(super) fn until_heard_again(member: &Member) -> Result<(), Turn> {
    match member.silent_since {
        Some(_) => Err(Turn::change(Member { silent_since: None, ..member.clone() })),
        None => Ok(()),
    }
}

/// Whether the engine of a silent manager may still run: only a cluster that does not list it, or that a pod is
/// being deleted while no cluster lists it, says that it does not.
pub(super) fn may_run(context: &Context<'_>, member: &Member, pod: &Pod) -> bool {
    let is_listed = context.index.node(&member.node).is_some();
    is_listed || context.index.engine().is_err() && !pod.terminating
}
