//! Allocation is set back once all members are back; or, in a restart that only goes forward, after a
//! phase: it has no end while a node does not come back, and the copies of the others must not wait
//! for that. So it is once no member needs it any more, such as one whose pod is not listed.

use crate::changes::Changes;
use crate::context::Context;
use crate::flow::engine::allocation::{is_needed, left_behind, restore};
use crate::ledger::LedgerChange;
use crate::{Action, Blocker, Code, Ledger, Restart};

/// What is left to do until allocation is as it was.
pub(super) enum Loosening {
    /// Nothing is owed.
    Done,
    /// It is as it was, and is owed no longer.
    Release(LedgerChange),
    Restore(Action),
}

/// The next step until allocation is as it was before the restart.
pub(super) fn loosen(context: &Context<'_>, ledger: &Ledger) -> Result<Loosening, Blocker> {
    let Some(debt) = &ledger.debts.allocation else { return Ok(Loosening::Done) };
    let allocation = context.index.allocation()?;
    Ok(match restore(context, allocation) {
        Some(action) => Loosening::Restore(action),
        None => Loosening::Release(LedgerChange::ReleaseAllocation {
            pod_uids: debt.holders.clone(),
            is_restored: left_behind(allocation, debt).is_none(),
        }),
    })
}

/// Sets allocation back in a restart that only goes forward and is late, or if it is limited in vain. An engine
/// that cannot be asked is waited for by its nodes.
pub(super) fn loosen_late(context: &Context<'_>, ledger: &Ledger, restart: &Restart) -> Changes {
    let mut changes = Changes::default();
    let is_late = restart.is_late_forward(context.snapshot.now, context.policy.phase_timeout);
    if !is_late && !is_in_vain(context, ledger) {
        return changes;
    }
    match loosen(context, ledger) {
        Ok(Loosening::Done) | Err(_) => {}
        Ok(Loosening::Release(change)) => changes.change(change),
        Ok(Loosening::Restore(action)) => {
            changes.act(action);
            let message = match is_late {
                true => "not every node is back in time: allocation is set back all the same",
                false => "no node needs limited allocation now: it is set back",
            };
            changes.wait_all(Code::RestoringAllocation, message);
        }
    }
    changes
}

/// Whether there are members under way, and none of them needs allocation as it is.
fn is_in_vain(context: &Context<'_>, ledger: &Ledger) -> bool {
    let mut members = ledger.under_way().peekable();
    members.peek().is_some() && !members.any(|member| is_needed(context, member))
}
