//! Times in the ledger that are not over yet by the clock of this process: the leader before it had one that
//! is ahead. A deadline that counts from such a time would come that much too late.

use crate::Time;
use crate::changes::Changes;
use crate::context::Context;
use crate::ledger::RestartChange;
use crate::{Ledger, Member};

/// Clocks that differ by less are as usual, and deadlines are longer, in milliseconds.
const USUAL: u64 = 10_000;

/// Writes such times anew, as now.
pub(super) fn correct_times(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let now = context.snapshot.now;
    let is_ahead = |at: Time| at.since(now) > USUAL;
    let Some(restart) = &ledger.restart else { return Changes::default() };
    let mut changes = Changes::default();
    if restart.frozen.is_some_and(is_ahead) {
        changes.change(RestartChange::Freeze(now));
    }
    for (index, member) in restart.members.iter().enumerate() {
        let others = [member.absent_since, member.silent_since];
        if is_ahead(member.since) || others.into_iter().flatten().any(is_ahead) {
            let correct = |at: Time| if is_ahead(at) { now } else { at };
            let member = Member {
                since: correct(member.since),
                absent_since: member.absent_since.map(correct),
                silent_since: member.silent_since.map(correct),
                ..member.clone()
            };
            changes.change(RestartChange::SetMember { index, member: Box::new(member) });
        }
    }
    changes
}
