//! Watches SearchClusters and gives each a task.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{BoxStream, select_all};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::apiserver::Apiserver;
use super::health::Health;
use super::metrics::Metrics;
use super::settings::Settings;
use super::worker::{Clusters, Key, Worker};
use crate::cluster::SearchCluster;

/// How long passes in hand may take at the end.
const GRACE: Duration = Duration::from_secs(45);

/// What every task is given.
pub(super) struct Controller {
    pub(super) api: Apiserver,
    pub(super) metrics: Arc<Metrics>,
    pub(super) settings: Arc<Settings>,
    pub(super) health: Arc<Health>,
}

/// An event of one watch, and the namespace it watches; none for all.
type Said = (Option<String>, watcher::Result<Event<SearchCluster>>);

impl Controller {
    /// Runs until `stop` says so; passes in hand are finished.
    pub(super) async fn run(&self, mut stop: watch::Receiver<bool>) {
        let mut events = self.watch();
        let (shown, clusters) = watch::channel(Arc::new(Clusters::new()));
        let (end, ended) = watch::channel(false);
        let mut tasks: JoinSet<Key> = JoinSet::new();
        let mut running: BTreeMap<Key, tokio::task::Id> = BTreeMap::new();
        let mut known = Known::new(&self.settings.namespaces);
        loop {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                Some(over) = tasks.join_next_with_id() => {
                    let id = match over {
                        Ok((id, _)) => id,
                        Err(error) => {
                            tracing::error!("a SearchCluster's task has ended badly: {error}");
                            error.id()
                        }
                    };
                    running.retain(|_, running| *running != id);
                }
                Some((namespace, event)) = events.next() => match event {
                    Ok(event) => {
                        if known.hear(namespace, event) {
                            shown.send_replace(Arc::new(known.clusters.clone()));
                        }
                        self.health.set_ready(known.is_complete());
                    }
                    Err(error) => tracing::warn!("watching the SearchClusters: {error}"),
                },
                else => break,
            }
            for key in known.clusters.keys().filter(|_| known.is_complete()) {
                if !running.contains_key(key) {
                    let worker = Worker::new(
                        key.clone(),
                        self.api.clone(),
                        Arc::clone(&self.metrics),
                        clusters.clone(),
                        &self.settings,
                        Arc::clone(&self.health),
                    );
                    let (ended, key) = (ended.clone(), key.clone());
                    let name = key.clone();
                    let task = async move {
                        Box::pin(worker.run(ended)).await;
                        name
                    };
                    running.insert(key, tasks.spawn(task).id());
                }
            }
        }
        end.send_replace(true);
        let all = async { while tasks.join_next().await.is_some() {} };
        if timeout(GRACE, all).await.is_err() {
            tracing::warn!("a pass has not ended within {GRACE:?}; whoever comes next goes on");
        }
    }

    fn watch(&self) -> BoxStream<'static, Said> {
        let watch = |namespace: Option<&String>| {
            let api: Api<SearchCluster> = match namespace {
                Some(namespace) => Api::namespaced(self.api.client(), namespace),
                None => Api::all(self.api.client()),
            };
            let namespace = namespace.cloned();
            watcher::watcher(api, watcher::Config::default())
                .default_backoff()
                .map(move |event| (namespace.clone(), event))
                .boxed()
        };
        match self.settings.namespaces.as_slice() {
            [] => watch(None),
            namespaces => select_all(namespaces.iter().map(|one| watch(Some(one)))).boxed(),
        }
    }
}

/// The SearchClusters, and which watches have shown all of theirs.
struct Known {
    clusters: Clusters,
    missing: Vec<Option<String>>,
    listings: BTreeMap<Option<String>, Clusters>,
}

impl Known {
    fn new(namespaces: &[String]) -> Self {
        let missing = match namespaces {
            [] => vec![None],
            all => all.iter().cloned().map(Some).collect(),
        };
        Self { clusters: Clusters::new(), missing, listings: BTreeMap::new() }
    }

    fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// Whether anything has changed.
    fn hear(&mut self, namespace: Option<String>, event: Event<SearchCluster>) -> bool {
        match event {
            Event::Apply(cluster) => {
                self.clusters.insert(key(&cluster), Arc::new(slim(cluster)));
                true
            }
            Event::Delete(cluster) => self.clusters.remove(&key(&cluster)).is_some(),
            Event::Init => {
                self.listings.insert(namespace, Clusters::new());
                false
            }
            Event::InitApply(cluster) => {
                let listing = self.listings.entry(namespace).or_default();
                listing.insert(key(&cluster), Arc::new(slim(cluster)));
                false
            }
            Event::InitDone => {
                let listing = self.listings.remove(&namespace).unwrap_or_default();
                self.missing.retain(|missing| *missing != namespace);
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

fn key(cluster: &SearchCluster) -> Key {
    (cluster.namespace().unwrap_or_default(), cluster.name_any())
}

/// Without what nobody here reads.
fn slim(mut cluster: SearchCluster) -> SearchCluster {
    cluster.metadata.managed_fields = None;
    cluster
}
