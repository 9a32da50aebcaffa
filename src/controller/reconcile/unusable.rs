//! Handles a SearchCluster for which no plan can be made: the status says why, and an object that is being
//! deleted is released if nothing of it is unfinished.

use std::sync::Arc;
use std::time::Duration;

use crate::context::Context;
use crate::effective_spec::{Refusal, is_unfinished};
use crate::execute::Executor;
use crate::observe::now;
use crate::requeue::Next;
use crate::status::Reported;
use crate::status::{gauges, ledger_of, pods_unlisted};
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{Action, Ledger, Report, annotation};

/// Interval while a spec is refused: a person has to repair something, and then a watch reports it.
const REFUSED_INTERVAL: Duration = Duration::from_secs(300);
/// Interval while the pods cannot be listed: the watch tries again by itself.
const UNLISTED_INTERVAL: Duration = Duration::from_secs(30);

/// Reports why the spec is not reconciled.
pub(super) async fn report_refused(
    cx: &mut Context,
    cluster: &Arc<SearchCluster>,
    refusal: &Refusal,
) -> Next {
    let ledger = ledger_of(cluster);
    let report = Report::refused(refusal.code, refusal.message.clone(), &ledger, now());
    report_only(cx, cluster, report, &ledger, REFUSED_INTERVAL).await
}

/// Reports that the pods cannot be listed.
pub(super) async fn report_unlisted(
    cx: &mut Context,
    cluster: &Arc<SearchCluster>,
    error: &str,
) -> Next {
    // A first status separates old requests from new ones: it is written only once the pods are
    // known.
    let Some(status) = &cluster.status else { return Next::after(UNLISTED_INTERVAL) };
    let ledger = status.ledger.clone();
    let report = pods_unlisted(status.report.clone(), error, now());
    report_only(cx, cluster, report, &ledger, UNLISTED_INTERVAL).await
}

async fn report_only(
    cx: &mut Context,
    cluster: &SearchCluster,
    report: Report,
    ledger: &Ledger,
    interval: Duration,
) -> Next {
    if is_to_be_released(cluster) {
        // Apiserver: remove our finalizer.
        let executor = Executor::new(cx, cluster);
        let executed = executor.execute_all(&[&Action::RemoveFinalizer]).await;
        if let Some(changed) = executed.cluster {
            cx.cluster.replace(changed);
        }
        if executed.outcome.is_err() {
            cx.refresh_cluster().await;
            return Next::after(cx.memory.requeue.after_failure(Some(ledger)));
        }
        return Next::after(interval);
    }
    let ends = &cx.memory.certificates.seen.ends;
    cx.clients.metrics.set_gauges(&cx.name, Some(gauges(&report, ledger, ends)));
    // Apiserver: the report, if it is due.
    match cx.status.report(cluster, report, ledger).await {
        Ok(Reported::Written(written)) => {
            cx.cluster.replace(*written);
            Next::after(interval)
        }
        Ok(Reported::DueIn(due)) => Next::after(due),
        Ok(Reported::Unchanged) => Next::after(interval),
        Err(failure) => {
            let after = cx.memory.requeue.after_failure(Some(ledger));
            tracing::warn!("cannot write the status, retrying in {after:?}: {failure}");
            cx.refresh_cluster().await;
            Next::after(after)
        }
    }
}

fn is_to_be_released(cluster: &SearchCluster) -> bool {
    let mut finalizers = cluster.metadata.finalizers.iter().flatten();
    cluster.metadata.deletion_timestamp.is_some()
        && finalizers.any(|name| name == annotation::FINALIZER)
        && !is_unfinished(cluster)
}
