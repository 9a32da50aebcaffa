//! Watches SearchClusters and gives each a task.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{BoxStream, select_all};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::apiserver::{Apiserver, unwatched};
use super::health::Health;
use super::metrics::Metrics;
use super::settings::Settings;
use super::unreadable::Unreadable;
use super::window::Windows;
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
    pub(super) windows: Windows,
}

/// An event of one watch, and the namespace it watches; none for all.
type Said = (Option<String>, watcher::Result<Event<Read>>);
/// One that cannot be understood (edited by hand, of another version) must not hide the others.
type Read = DeserializeGuard<SearchCluster>;

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
                        known.unreadable.tell(&self.api, &self.metrics, &self.settings.name);
                        self.health.set_ready(known.is_ready());
                    }
                    Err(error) => {
                        let of = namespace.as_deref();
                        tracing::warn!("{}", unwatched("searchclusters", of, &error));
                        known.refused(namespace, &error);
                        self.health.set_ready(known.is_ready());
                    }
                },
                else => break,
            }
            for key in known.clusters.keys() {
                // Who else selects the same pods is known once the whole namespace is.
                if known.is_complete(&key.0) && !running.contains_key(key) {
                    let worker = Worker::new(
                        key.clone(),
                        self.api.clone(),
                        Arc::clone(&self.metrics),
                        clusters.clone(),
                        &self.settings,
                        Arc::clone(&self.health),
                        self.windows.open(key.clone()),
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
            let api: Api<Read> = match namespace {
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
    unreadable: Unreadable,
    missing: Vec<Option<String>>,
    /// Of those missing: what we are not allowed to see.
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
            unreadable: Unreadable::default(),
            missing,
            forbidden: BTreeSet::new(),
            listings: BTreeMap::new(),
        }
    }

    /// Whether all of this namespace are known.
    fn is_complete(&self, namespace: &str) -> bool {
        let is_in = |missing: &Option<String>| missing.as_deref().is_none_or(|of| of == namespace);
        !self.missing.iter().any(is_in)
    }

    /// Whether all are known that we are allowed to see, and there are such.
    fn is_ready(&self) -> bool {
        let forbidden =
            |missing: &Option<String>| missing.is_some() && self.forbidden.contains(missing);
        self.missing.iter().all(forbidden)
    }

    /// Takes note of a watch that cannot be set up.
    fn refused(&mut self, namespace: Option<String>, error: &watcher::Error) {
        if let watcher::Error::InitialListFailed(kube::Error::Api(status)) = error
            && status.code == 403
        {
            self.forbidden.insert(namespace);
        }
    }

    /// Whether anything has changed.
    fn hear(&mut self, namespace: Option<String>, event: Event<Read>) -> bool {
        match event {
            Event::Apply(read) => {
                let key = key(&read);
                match self.unreadable.open(key.clone(), read) {
                    Some(cluster) => {
                        self.clusters.insert(key, Arc::new(slim(cluster)));
                        true
                    }
                    None => self.clusters.remove(&key).is_some(),
                }
            }
            Event::Delete(read) => {
                self.unreadable.forget(&key(&read));
                self.clusters.remove(&key(&read)).is_some()
            }
            Event::Init => {
                self.unreadable.relist(namespace.as_deref());
                self.listings.insert(namespace, Clusters::new());
                false
            }
            Event::InitApply(read) => {
                let key = key(&read);
                if let Some(cluster) = self.unreadable.open(key.clone(), read) {
                    let listing = self.listings.entry(namespace).or_default();
                    listing.insert(key, Arc::new(slim(cluster)));
                }
                false
            }
            Event::InitDone => {
                self.unreadable.listed(namespace.as_deref());
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

fn key(cluster: &Read) -> Key {
    (cluster.namespace().unwrap_or_default(), cluster.name_any())
}

/// Without what nobody here reads.
fn slim(mut cluster: SearchCluster) -> SearchCluster {
    cluster.metadata.managed_fields = None;
    cluster
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_must_not_be_seen_keeps_no_other_waiting() {
        let mut known = Known::new(&["a".into(), "b".into()]);
        known.hear(Some("a".into()), Event::Init);
        known.hear(Some("a".into()), Event::InitDone);
        assert!(known.is_complete("a") && !known.is_complete("b") && !known.is_ready());
        let status = kube::core::Status { code: 403, ..kube::core::Status::default() };
        let forbidden = kube::Error::Api(Box::new(status));
        let error = watcher::Error::InitialListFailed(forbidden);
        assert!(unwatched("searchclusters", Some("b"), &error).contains("roles of deploy/"));
        known.refused(Some("b".into()), &error);
        assert!(known.is_ready() && !known.is_complete("b"));
    }
}
