//! A restart that only goes forward does not wait without end for a manager that does not answer: its
//! Kubernetes node may be gone for good, and its pod is listed all the same.

use crate::context::Context;
use crate::flow::member::bring_back::owe_start_of_gone;
use crate::flow::observed::{if_gone_for_good, is_over_time};
use crate::flow::turn::Turn;
use crate::snapshot::namespace_and_name;
use crate::{Blocker, Direction, Member, MemberStep, Pod, Restart, annotation};

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
        Some(_) => {
            let mut message = format!("{message}{}", if_gone_for_good(context, pod));
            if may_run {
                message = format!("{message}; {}", how_left_out(context, pod));
            }
            Turn::Wait(Blocker { code: unknown.code, message })
        }
    }
}

/// The command with which a person leaves the node of this pod out, for the end of a message.
fn how_left_out(context: &Context<'_>, pod: &Pod) -> String {
    let (namespace, _) = namespace_and_name(&context.snapshot.cluster.name);
    format!(
        "to go on without it, although it may run on another config than the others: \
         `kubectl -n {namespace} annotate pod {} {}-`",
        pod.name,
        annotation::PHASE
    )
}

/// The end of a member that a person leaves out: its start is a debt. Nothing unless its manager has not answered in
/// its time, in a restart that only goes forward.
pub(crate) fn left_out(context: &Context<'_>, restart: &Restart, member: &Member) -> Option<Turn> {
    let is_silent = member.step == MemberStep::Restarting
        && member.silent_since.is_some()
        && context.index.manager(&member.pod_uid).is_err();
    let reason = "its phase was taken away while its manager did not answer";
    (is_silent && restart.direction == Direction::Forward)
        .then(|| owe_start_of_gone(context, member, reason))
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
