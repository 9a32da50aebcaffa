//! Times in the ledger that the clock of this process does not fit: it has jumped forward since, or the leader
//! before it had one that is ahead, so that they are not over yet. A deadline that counts from such a time would come that much too late.

use crate::Ledger;
use crate::changes::Changes;
use crate::context::Context;
use crate::ledger::LedgerChange;

/// Clocks that differ by less are as usual, and deadlines are longer, in milliseconds.
const USUAL: u64 = 10_000;

/// Writes such times anew, as now; and moves all times with a clock that has jumped forward: what is under way
/// has the time that it would have had.
pub(super) fn correct_times(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let now = context.snapshot.now;
    let latest = now.plus(USUAL);
    if context.snapshot.jumped > 0 {
        return Changes::of_ledger(LedgerChange::MoveTimes(context.snapshot.jumped));
    }
    match ledger.has_times_after(latest) {
        true => Changes::of_ledger(LedgerChange::CorrectTimes { latest, now }),
        false => Changes::default(),
    }
}
