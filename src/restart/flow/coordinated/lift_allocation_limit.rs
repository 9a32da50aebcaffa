//! Lifts the allocation limit once all members are back; or, in a restart that only goes forward, after a
//! phase: such a restart does not end while a node does not come back, and the copies of the others must not
//! wait for that. The limit is also lifted once no member needs it any more, such as one whose pod is not
//! listed.

use crate::changes::Changes;
use crate::context::Context;
use crate::flow::engine::allocation::{is_needed, left_behind, restore};
use crate::ledger::LedgerChange;
use crate::{Action, Blocker, Code, Ledger, Restart};

/// The step that is due until allocation is as it was before the restart.
pub(super) enum LimitLift {
    /// There is no allocation debt.
    Done,
    /// The setting is as it was before: the change that removes the debt.
    Release(LedgerChange),
    Restore(Action),
}

/// Decides on the next step until allocation is as it was before the restart. Fails if the setting is
/// unknown.
pub(super) fn lift_limit(context: &Context<'_>, ledger: &Ledger) -> Result<LimitLift, Blocker> {
    let Some(debt) = &ledger.debts.allocation else { return Ok(LimitLift::Done) };
    let allocation = context.index.allocation()?;
    Ok(match restore(context, allocation) {
        Some(action) => LimitLift::Restore(action),
        None => LimitLift::Release(LedgerChange::ReleaseAllocation {
            pod_uids: debt.holders.clone(),
            is_restored: left_behind(allocation, debt).is_none(),
        }),
    })
}

/// Restores allocation if no member needs the limit, or if a restart that only goes forward is late. Does
/// nothing while the engine is unreachable: the members wait for it.
pub(super) fn lift_limit_late(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
) -> Changes {
    let mut changes = Changes::default();
    let is_late = restart.is_late_forward(context.snapshot.now, context.policy.phase_timeout);
    if !is_late && !is_in_vain(context, ledger) {
        return changes;
    }
    match lift_limit(context, ledger) {
        Ok(LimitLift::Done) | Err(_) => {}
        Ok(LimitLift::Release(change)) => changes.change(change),
        Ok(LimitLift::Restore(action)) => {
            changes.act(action);
            let message = if is_late {
                "not every node is back in time: restoring allocation anyway"
            } else {
                "no node needs limited allocation any more: restoring it"
            };
            changes.wait_all(Code::RestoringAllocation, message);
        }
    }
    changes
}

/// True if there are members under way, and none of them needs limited allocation.
fn is_in_vain(context: &Context<'_>, ledger: &Ledger) -> bool {
    let mut members = ledger.under_way().peekable();
    members.peek().is_some() && !members.any(|member| is_needed(context, member))
}
