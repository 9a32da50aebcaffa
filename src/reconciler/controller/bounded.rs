//! Many things at once, but not too many.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

/// How many are done at the same time.
const WIDTH: usize = 16;

/// Waits for all of them, 16 at a time and begun in their order; results in the order in which they
/// came. Nothing is spawned: dropping the future drops every one.
pub(super) async fn together<F: Future>(all: Vec<F>) -> Vec<F::Output> {
    let mut waiting = all.into_iter();
    let mut results = Vec::with_capacity(waiting.len());
    let mut under_way = FuturesUnordered::new();
    loop {
        let free = WIDTH - under_way.len();
        under_way.extend(waiting.by_ref().take(free));
        let Some(result) = under_way.next().await else { return results };
        results.push(result);
    }
}
