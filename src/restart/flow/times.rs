//! Times in the ledger that are not over yet by the clock of this process: the leader before it had one that
//! is ahead. A deadline that counts from such a time would come that much too late.

use crate::Ledger;
use crate::changes::Changes;
use crate::context::Context;
use crate::ledger::LedgerChange;

/// Clocks that differ by less are as usual, and deadlines are longer, in milliseconds.
const USUAL: u64 = 10_000;

/// Writes such times anew, as now.
pub(super) fn correct_times(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let now = context.snapshot.now;
    let latest = now.plus(USUAL);
    match ledger.has_times_after(latest) {
        true => Changes::of_ledger(LedgerChange::CorrectTimes { latest, now }),
        false => Changes::default(),
    }
}
