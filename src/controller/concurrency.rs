//! Runs many calls at the same time, up to a limit.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, timeout_at};

/// Limit of the calls that run at the same time.
const LIMIT: usize = 16;

/// Limit of the long polls of managers at the same time. Each takes a file descriptor for up to a minute;
/// short requests to managers, to the engine and to the apiserver need some as well.
pub(super) const MAX_POLLS: usize = 256;

/// Awaits all futures, 16 at a time and started in their order; results in the order in which they came.
/// Nothing is spawned: dropping the future drops every one.
pub(super) async fn join_limited<F: Future>(all: Vec<F>) -> Vec<F::Output> {
    let mut waiting = all.into_iter();
    let mut results = Vec::with_capacity(waiting.len());
    let mut running = FuturesUnordered::new();
    loop {
        let free = LIMIT - running.len();
        running.extend(waiting.by_ref().take(free));
        let Some(result) = running.next().await else { return results };
        results.push(result);
    }
}

/// The result of `call`, if it completes by `end`. Does not start it after `end`.
pub(super) async fn done_by<F: Future>(end: Option<Instant>, call: F) -> Option<F::Output> {
    match end {
        None => Some(call.await),
        Some(end) if Instant::now() < end => timeout_at(end, call).await.ok(),
        Some(_) => None,
    }
}
