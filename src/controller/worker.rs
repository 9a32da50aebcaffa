//! The task of one SearchCluster: reconcile, wait, and again; never two reconciles at once.

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::{Instrument, Span};

use super::context::Context;
use super::reconcile::reconcile;
use super::snapshot_requests::SnapshotQueue;
use super::wait::{ManagerPolls, wait};

/// Runs until the SearchCluster is gone or `stop` is set; finishes a reconcile under way. Also ends if a
/// reconcile hangs: the next task starts without any state of this one.
pub(super) async fn run(
    cx: Context,
    snapshots: SnapshotQueue,
    span: Span,
    stop: watch::Receiver<bool>,
) {
    Box::pin(work(cx, snapshots, stop)).instrument(span).await;
}

async fn work(mut cx: Context, mut snapshots: SnapshotQueue, mut stop: watch::Receiver<bool>) {
    let mut polls = ManagerPolls::default();
    loop {
        let progress = cx.progress.clone();
        let next = progress.unless_it_hangs(Box::pin(reconcile(&mut cx))).await;
        let Some(Some(next)) = next else { break };
        let reading = cx.observer.engine.reading();
        let not_before = Instant::now() + cx.requeue.least_pause(next.is_under_way(), reading);
        let wait = async {
            wait(&mut cx, &mut polls, &mut snapshots, next).await;
            sleep_until(not_before).await;
        };
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            () = wait => {}
        }
    }
    cx.metrics.set_gauges(&cx.name, None);
    cx.events.finish().await;
}
