//! Protects data that is deleted with a replaced pod or container, where the rules are not asked because the
//! engine is down.

use crate::blocker::{Blocker, Check};
use crate::context::Context;
use crate::rules::{Deletion, deletion};
use crate::{Ledger, Member, Pod, Restart};

/// Passes, before the stop, unless the pod or its container would take the only copy of something with it.
pub(crate) fn may_be_deleted(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    member: &Member,
    pod: &Pod,
) -> Check {
    match deletion_in(context, restart, member, pod) {
        None => Ok(()),
        Some(deletion) => check(context, ledger, pod, deletion),
    }
}

/// Passes, after the stop, if [`may_be_deleted`] does or only a container is deleted: the other container may
/// be there already, and then has to be started.
pub(crate) fn may_be_replaced(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    member: &Member,
    pod: &Pod,
) -> Check {
    match deletion_in(context, restart, member, pod) {
        None | Some(Deletion::Container) => Ok(()),
        Some(deletion @ (Deletion::Pod | Deletion::PodOfUnknown | Deletion::Elsewhere)) => {
            check(context, ledger, pod, deletion)
        }
    }
}

fn deletion_in(
    context: &Context<'_>,
    restart: &Restart,
    member: &Member,
    pod: &Pod,
) -> Option<Deletion> {
    let fixed = member.update.as_ref().and_then(|fixed| Deletion::of(&fixed.update));
    deletion(context.policy, restart.request.strategy, fixed, pod)
}

fn check(context: &Context<'_>, ledger: &Ledger, pod: &Pod, deletion: Deletion) -> Check {
    let evaluation = context.stop_evaluation(ledger).map_err(|blocker| Blocker {
        message: format!(
            "{}, and it is unknown whether it holds the only copy of data: {}",
            deletion.describe(&pod.node),
            blocker.message
        ),
        ..blocker
    });
    evaluation?.check_deletion(pod)
}
