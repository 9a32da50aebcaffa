//! Runs many calls at the same time, up to a limit.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, timeout_at};

/// How many run at the same time.
const LIMIT: usize = 16;

/// How many managers are waited for at the same time until they have changed. Each takes a descriptor for
/// as long as a minute; also requests to the others, to the engine and to the apiserver need some.
pub(super) const MAX_POLLS: usize = 256;

/// Waits for all of them, 16 at a time and started in their order; results in the order in which
/// they came. Nothing is spawned: dropping the future drops every one.
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

/// The result of `call`; none if it is not done by `end`, also if there was no time to begin it.
pub(super) async fn done_by<F: Future>(end: Option<Instant>, call: F) -> Option<F::Output> {
    match end {
        None => Some(call.await),
        Some(end) if Instant::now() < end => timeout_at(end, call).await.ok(),
        Some(_) => None,
    }
}
