//! The time after a restart in which its requests may still arrive.

use super::Snapshot;

/// For how long after a restart's end the engine is still observed, in milliseconds: a request of
/// ours that was slow may arrive late.
pub(crate) const LATE_REQUEST_WINDOW: u64 = 60_000;

/// Whether a restart ended a short while ago.
pub(crate) fn ended_recently(snapshot: &Snapshot) -> bool {
    snapshot.ledger.history.last().is_some_and(|entry| {
        let ended = entry.started.plus(entry.seconds * 1000);
        snapshot.now.since(ended) < LATE_REQUEST_WINDOW
    })
}
