//! Turns a coordinated restart back: compensation for all members.

use super::active;
use crate::changes::{Changes, Waits};
use crate::context::Context;
use crate::flow::member::abort::set_back;
use crate::flow::member::compensation::{compensation_for, outcome_of};
use crate::ledger::RestartChange;
use crate::{Direction, Outcome, Reason, Restart};

/// Turns all members back, to the last good config where there is one. `waits`: the reasons to wait of the
/// step that failed; its other changes are dropped.
pub(super) fn revert_config(
    context: &Context<'_>,
    restart: &Restart,
    reason: &str,
    waits: Waits,
) -> Changes {
    let mut changes = Changes::from(waits);
    let mut outcome = Outcome::RolledBack;
    for (index, member) in active(restart) {
        let manager = context.index.manager(&member.pod_uid).ok();
        let compensation = compensation_for(member, manager, true, false);
        let own = outcome_of(context, member, compensation.config);
        if own != Outcome::RolledBack {
            outcome = own;
        }
        changes.change(set_back(context, index, member, compensation, reason));
    }
    changes.change(RestartChange::SetDirection(Direction::Back));
    changes.event(None, Reason::RestartAborted, format!("Reverting every node: {reason}"));
    changes.end_with(outcome, reason);
    changes
}
