//! A pod that is replaced and has no volume claims, where the rules are not asked: its engine is down.

use super::update::step_of;
use crate::blocker::{Blocker, Check};
use crate::context::Context;
use crate::rules::is_deleted;
use crate::{Ledger, Member, Pod, Restart, UpdateStep};

/// Passes unless the pod would take the only copy of something with it.
pub(in crate::flow) fn may_be_deleted(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    member: &Member,
    pod: &Pod,
) -> Check {
    let is_fixed = step_of(member) == UpdateStep::Replace;
    if !is_deleted(context.policy, restart.request.strategy, is_fixed, pod) {
        return Ok(());
    }
    let evaluation = context.stop_evaluation(ledger).map_err(|blocker| Blocker {
        message: format!(
            "the step replace would delete the pod of {}, whose data is on no volume claim, and it is not \
             known what it alone has: {}",
            pod.node, blocker.message
        ),
        ..blocker
    });
    evaluation?.check_deletion(pod)
}
