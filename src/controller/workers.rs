//! Watches SearchClusters and runs a task for each.

mod failed;
mod known;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{BoxStream, select_all};
use kube::Api;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::apiserver::watch_error;
use super::clusters::{Clusters, Key, NewestCluster};
use super::context::{Context, Shared};
use super::snapshot_requests::SnapshotQueues;
use super::worker;
use failed::Failed;
use known::{Known, Object};
use stayput_kube_access::read_limits::watch_config;

/// Time limit of the reconciles under way at the end of the process.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(45);

/// Runs the tasks.
pub(super) struct Controller {
    pub(super) shared: Shared,
    pub(super) snapshots: SnapshotQueues,
}

/// An event of one watch, and the watched namespace; `None` for all namespaces.
type NamespaceEvent = (Option<String>, watcher::Result<Event<Object>>);

impl Controller {
    /// Runs until `stop` is set; finishes the reconciles under way.
    pub(super) async fn run(&self, mut stop: watch::Receiver<bool>) {
        let Shared { api, metrics, settings, health, .. } = &self.shared;
        let mut events = self.watch();
        let (shown, clusters) = watch::channel(Arc::new(Clusters::new()));
        let (end, ended) = watch::channel(false);
        let mut tasks: JoinSet<Key> = JoinSet::new();
        let mut running: BTreeMap<Key, tokio::task::Id> = BTreeMap::new();
        let mut known = Known::new(&settings.namespaces);
        let mut failed = Failed::default();
        loop {
            let pause_is_over = failed.pause_is_over();
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                Some(over) = tasks.join_next_with_id() => {
                    let id = match &over {
                        Ok((id, _)) => *id,
                        Err(error) => error.id(),
                    };
                    let ended = running.iter().find(|(_, running)| **running == id);
                    let ended = ended.map(|(key, _)| key.clone());
                    running.retain(|_, running| *running != id);
                    if let (Err(error), Some(key)) = (over, ended) {
                        let name = format!("{}/{}", key.0, key.1);
                        tracing::error!(cluster = name, "the task has failed: {error}");
                        metrics.set_gauges(&name, None);
                        failed.note(key);
                    }
                }
                () = pause_is_over => {}
                Some((namespace, event)) = events.next() => match event {
                    Ok(event) => {
                        if known.apply(namespace, event) {
                            shown.send_replace(Arc::new(known.clusters.clone()));
                        }
                        known.undecodable.report(api, metrics, &settings.name);
                        health.set_ready(known.is_ready());
                    }
                    Err(error) => {
                        let of = namespace.as_deref();
                        tracing::warn!("{}", watch_error("searchclusters", of, &error));
                        known.note_error(namespace, &error);
                        health.set_ready(known.is_ready());
                    }
                },
                else => break,
            }
            for key in known.clusters.keys() {
                // Other SearchClusters that select the same pods must be known first.
                let is_wanted = known.is_complete(&key.0) && !running.contains_key(key);
                if is_wanted && failed.may_start(key) {
                    let task = self.task(key, clusters.clone(), ended.clone());
                    running.insert(key.clone(), tasks.spawn(task).id());
                }
            }
        }
        end.send_replace(true);
        let all = async { while tasks.join_next().await.is_some() {} };
        if timeout(SHUTDOWN_TIMEOUT, all).await.is_err() {
            tracing::warn!(
                "a reconcile has not ended within {SHUTDOWN_TIMEOUT:?}; the next leader continues"
            );
            tasks.shutdown().await;
        }
        // Another replica may lead now, while this one goes on without the Lease.
        metrics.clear();
    }

    /// The task of one SearchCluster; completes with its key.
    fn task(
        &self,
        key: &Key,
        clusters: watch::Receiver<Arc<Clusters>>,
        stop: watch::Receiver<bool>,
    ) -> impl Future<Output = Key> + use<> {
        let name = format!("{}/{}", key.0, key.1);
        // The highest level, so that every log line has the span, whatever level is logged.
        let span = tracing::error_span!("cluster", cluster = name, restart = "");
        let cluster = NewestCluster::new(key.clone(), clusters, span.clone());
        let cx = Context::new(key, cluster, &self.shared);
        let (key, snapshots) = (key.clone(), self.snapshots.open(key.clone()));
        async move {
            Box::pin(worker::run(cx, snapshots, span, stop)).await;
            key
        }
    }

    fn watch(&self) -> BoxStream<'static, NamespaceEvent> {
        let watch = |namespace: Option<&String>| {
            let api: Api<Object> = match namespace {
                Some(namespace) => Api::namespaced(self.shared.api.client(), namespace),
                None => Api::all(self.shared.api.client()),
            };
            let namespace = namespace.cloned();
            watcher::watcher(api, watch_config())
                .default_backoff()
                .map(move |event| (namespace.clone(), event))
                .boxed()
        };
        match self.shared.settings.namespaces.as_slice() {
            [] => watch(None),
            namespaces => select_all(namespaces.iter().map(|one| watch(Some(one)))).boxed(),
        }
    }
}
