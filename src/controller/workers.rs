//! Watches SearchClusters and runs a task for each: reconcile, wait, and again; never two reconciles of one
//! at once. A task that ends by a fault of ours, or hangs, is started again after a pause; the others go on.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{BoxStream, select_all};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::read_limits::watch_config;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tracing::{Instrument, Span};

use crate::apiserver::watch_error;
use crate::clusters::{Clusters, Key, LiveCluster, Undecodable};
use crate::context::{Context, Shared};
use crate::http_server::{SnapshotQueue, SnapshotQueues};
use crate::pods::owns_phase;
use crate::reconcile::reconcile;
use crate::wait::{ManagerPolls, wait};

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
        let cluster = LiveCluster::new(key.clone(), clusters, span.clone());
        let cx = Context::new(key, cluster, &self.shared);
        let (key, snapshots) = (key.clone(), self.snapshots.open(key.clone()));
        async move {
            Box::pin(run(cx, snapshots, span, stop)).await;
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

/// Pause before such a task is started again.
const PAUSE: Duration = Duration::from_secs(10);

/// Time at which the task of each SearchCluster may be started again.
#[derive(Debug, Default)]
struct Failed(BTreeMap<Key, Instant>);

impl Failed {
    fn note(&mut self, key: Key) {
        self.0.insert(key, Instant::now() + PAUSE);
    }

    /// True if the task of this SearchCluster may be started now.
    fn may_start(&mut self, key: &Key) -> bool {
        let now = Instant::now();
        self.0.retain(|_, at| *at > now);
        !self.0.contains_key(key)
    }

    /// Completes once one of the tasks may be started again.
    fn pause_is_over(&self) -> impl Future<Output = ()> + use<> {
        let first = self.0.values().min().copied();
        async move {
            match first {
                Some(at) => sleep_until(at).await,
                None => pending().await,
            }
        }
    }
}

/// Object of a watch event. One that cannot be decoded (edited by hand, of another version) must not hide the
/// others.
type Object = DeserializeGuard<SearchCluster>;

/// The SearchClusters that the watches have shown, and which watches are in sync.
struct Known {
    clusters: Clusters,
    undecodable: Undecodable,
    /// Watches that are not in sync yet, by namespace; `None` is the watch of all namespaces.
    missing: Vec<Option<String>>,
    /// Watches that we are not allowed to set up, by namespace.
    forbidden: BTreeSet<Option<String>>,
    listings: BTreeMap<Option<String>, Clusters>,
}

impl Known {
    fn new(namespaces: &[String]) -> Self {
        let missing = match namespaces {
            [] => vec![None],
            all => all.iter().cloned().map(Some).collect(),
        };
        Self {
            clusters: Clusters::new(),
            undecodable: Undecodable::default(),
            missing,
            forbidden: BTreeSet::new(),
            listings: BTreeMap::new(),
        }
    }

    /// True if all SearchClusters of this namespace are known.
    fn is_complete(&self, namespace: &str) -> bool {
        let is_in = |missing: &Option<String>| missing.as_deref().is_none_or(|of| of == namespace);
        !self.missing.iter().any(is_in)
    }

    /// True if all SearchClusters that we are allowed to watch are known, and at least one watch is allowed.
    fn is_ready(&self) -> bool {
        let forbidden =
            |missing: &Option<String>| missing.is_some() && self.forbidden.contains(missing);
        self.missing.iter().all(forbidden)
    }

    /// Records a watch that we are not allowed to set up.
    fn note_error(&mut self, namespace: Option<String>, error: &watcher::Error) {
        if let watcher::Error::InitialListFailed(kube::Error::Api(status)) = error
            && status.code == 403
        {
            self.forbidden.insert(namespace);
        }
    }

    /// Applies an event of a watch. True if the SearchClusters have changed.
    fn apply(&mut self, namespace: Option<String>, event: Event<Object>) -> bool {
        match event {
            Event::Apply(object) => {
                let key = key(&object);
                match self.undecodable.decode(key.clone(), object) {
                    Some(cluster) => {
                        self.clusters.insert(key, Arc::new(slim(cluster)));
                        true
                    }
                    None => self.clusters.remove(&key).is_some(),
                }
            }
            Event::Delete(object) => {
                self.undecodable.remove(&key(&object));
                self.clusters.remove(&key(&object)).is_some()
            }
            Event::Init => {
                self.undecodable.begin_list(namespace.as_deref());
                self.listings.insert(namespace, Clusters::new());
                false
            }
            Event::InitApply(object) => {
                let key = key(&object);
                if let Some(cluster) = self.undecodable.decode(key.clone(), object) {
                    let listing = self.listings.entry(namespace).or_default();
                    listing.insert(key, Arc::new(slim(cluster)));
                }
                false
            }
            Event::InitDone => {
                self.undecodable.end_list(namespace.as_deref());
                let listing = self.listings.remove(&namespace).unwrap_or_default();
                self.missing.retain(|missing| *missing != namespace);
                self.forbidden.remove(&namespace);
                match &namespace {
                    None => self.clusters = listing,
                    Some(namespace) => {
                        self.clusters.retain(|key, _| key.0 != *namespace);
                        self.clusters.extend(listing);
                    }
                }
                true
            }
        }
    }
}

fn key(cluster: &Object) -> Key {
    (cluster.namespace().unwrap_or_default(), cluster.name_any())
}

/// The SearchCluster without large fields that are not used here.
fn slim(mut cluster: SearchCluster) -> SearchCluster {
    if let Some(fields) = &mut cluster.metadata.managed_fields {
        fields.retain(owns_phase);
    }
    cluster
}

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
        let progress = cx.memory.progress.clone();
        let next = progress.unless_it_hangs(Box::pin(reconcile(&mut cx))).await;
        let Some(Some(next)) = next else { break };
        let reading = cx.observer.facts.engine.reading();
        let not_before =
            Instant::now() + cx.memory.requeue.least_pause(next.is_under_way(), reading);
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
    cx.clients.metrics.set_gauges(&cx.name, None);
    cx.events.finish().await;
}

/// Time limit of a round of a reconcile. Every call has its own timeout; a round that takes longer than this
/// hangs.
const HANGS_AFTER: Duration = Duration::from_secs(600);

/// Begin of the last round of a reconcile.
#[derive(Debug, Clone)]
pub(super) struct Progress(Arc<Mutex<Instant>>);

impl Default for Progress {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Progress {
    /// Records that a round begins.
    pub(super) fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn hangs_at(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) + HANGS_AFTER
    }

    /// The result of a reconcile that begins now, unless a round of it hangs.
    pub(super) async fn unless_it_hangs<T>(self, reconcile: impl Future<Output = T>) -> Option<T> {
        self.note();
        let mut reconcile = pin!(reconcile);
        loop {
            let end = self.hangs_at();
            match timeout_at(end, &mut reconcile).await {
                Ok(done) => return Some(done),
                Err(_) if self.hangs_at() > end => {}
                Err(_) => {
                    tracing::error!(
                        "a reconcile hung for {HANGS_AFTER:?}: cancelled and started again"
                    );
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
