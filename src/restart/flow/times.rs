//! Corrects times in the ledger that are in the future for the clock of this process: the clock has jumped
//! forward since, or that of the leader before was ahead. A deadline that counts from such a time would come
//! that much too late.

use crate::Ledger;
use crate::changes::Changes;
use crate::context::Context;
use crate::ledger::LedgerChange;

/// Usual clock skew, in milliseconds: smaller differences are ignored, and deadlines are longer.
const USUAL: u64 = 10_000;

/// Sets times in the ledger that are in the future to now; or moves all times with a clock that has jumped
/// forward, so that members under way keep the time that they would have had.
pub(super) fn correct_times(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let now = context.snapshot.now;
    let latest = now.plus(USUAL);
    if context.snapshot.jumped > 0 {
        return Changes::of_ledger(LedgerChange::MoveTimes(context.snapshot.jumped));
    }
    if ledger.has_times_after(latest) {
        Changes::of_ledger(LedgerChange::CorrectTimes { latest, now })
    } else {
        Changes::default()
    }
}
