//! The end of a coordinated restart whose members are all back.

use super::active;
use super::lift_allocation_limit::{LimitLift, lift_limit};
use crate::changes::Changes;
use crate::context::Context;
use crate::flow::member::finish::finish_member;
use crate::{Code, Ending, Ledger, Restart};

/// Restores allocation; then all members are finished in one write. An engine that does not take the setting
/// within a phase is not waited for: the debt stays.
pub(super) fn complete(context: &Context<'_>, ledger: &Ledger, restart: &Restart) -> Changes {
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
        changes.merge(finish_member(context, ledger, index, member, Ending::done()));
    }
    changes
}
