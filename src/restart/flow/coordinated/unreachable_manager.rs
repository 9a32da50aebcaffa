//! A restart that only goes forward does not wait forever for an unreachable manager: the Kubernetes node may
//! be gone for good while the pod is still listed.

use crate::context::Context;
use crate::flow::member::bring_back::owe_start_of_gone;
use crate::flow::observed::{if_gone_for_good, is_over_time};
use crate::flow::turn::Turn;
use crate::snapshot::namespace_and_name;
use crate::{Blocker, Direction, Member, MemberStep, Pod, Restart, annotation};

/// The turn of a member whose manager is unreachable, in a restart that only goes forward. Once its phase is
/// over, the member has one more phase, from the first plan that finds the manager unreachable; then its
/// start is a debt. `may_run`: the engine may run on another config than the others are going to, and the
/// member waits for a person instead.
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

/// Ends a member that a person leaves out: its start is a debt. Only for a member whose manager has not
/// answered in time, in a restart that only goes forward.
pub(crate) fn left_out(context: &Context<'_>, restart: &Restart, member: &Member) -> Option<Turn> {
    let is_silent = member.step == MemberStep::Restarting
        && member.silent_since.is_some()
        && context.index.manager(&member.pod_uid).is_err();
    let reason = "its phase annotation was removed while its manager did not answer";
    (is_silent && restart.direction == Direction::Forward)
        .then(|| owe_start_of_gone(context, member, reason))
}

/// Passes once the ledger no longer marks a manager as unreachable that answers again.
pub(super) fn until_heard_again(member: &Member) -> Result<(), Turn> {
    match member.silent_since {
        Some(_) => Err(Turn::change(Member { silent_since: None, ..member.clone() })),
        None => Ok(()),
    }
}

/// True if the engine of an unreachable manager may still run. False only if the cluster answers and does not
/// list the node, or if no cluster answers and the pod is being deleted.
pub(super) fn may_run(context: &Context<'_>, member: &Member, pod: &Pod) -> bool {
    let is_listed = context.index.node(&member.node).is_some();
    is_listed || context.index.engine().is_err() && !pod.terminating
}
