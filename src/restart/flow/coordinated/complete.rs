//! The end of a coordinated restart whose members are all back.

use super::active;
use crate::changes::Changes;
use crate::context::Context;
use crate::flow::engine::allocation::restore;
use crate::flow::member::finish::finish_member;
use crate::ledger::LedgerChange;
use crate::{Code, Ending, Ledger, Restart};

/// Restores allocation; then all members are finished in one write.
pub(super) fn complete(context: &Context<'_>, ledger: &Ledger, restart: &Restart) -> Changes {
    let mut changes = Changes::default();
    if ledger.debts.allocation.is_some() {
        match context.index.allocation().map(|allocation| restore(context, allocation)) {
            Err(blocker) => {
                changes.wait_all(blocker.code, blocker.message);
                return changes;
            }
            Ok(Some(action)) => {
                changes.act(action);
                let message = "allocation is being set back to what it was";
                changes.wait_all(Code::RestoringAllocation, message);
                return changes;
            }
            Ok(None) => {}
        }
        let pod_uids = active(restart).map(|(_, member)| member.pod_uid.clone()).collect();
        changes.change(LedgerChange::ReleaseAllocation { pod_uids, is_restored: false });
    }
    for (index, member) in active(restart) {
        changes.merge(finish_member(context, ledger, index, member, Ending::done()));
    }
    changes
}
