//! The time after a restart in which its requests may still arrive.

use super::ledger::end_of;
use super::{Ledger, Snapshot, Time};

/// For how long after a restart's end the engine is still observed, in milliseconds: a request of
/// ours that was slow may arrive late.
pub(crate) const LATE_REQUEST_WINDOW: u64 = 60_000;

/// True if a restart ended a short while ago.
pub(crate) fn ended_recently(snapshot: &Snapshot) -> bool {
    last_end(&snapshot.ledger).is_some_and(|ended| snapshot.now.since(ended) < LATE_REQUEST_WINDOW)
}

/// When the last restart ended.
pub(crate) fn last_end(ledger: &Ledger) -> Option<Time> {
    ledger.history.last().map(end_of)
}
