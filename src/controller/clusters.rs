//! The SearchClusters as the watch shows them, and the newest known state of one of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use kube::api::ObjectMeta;
use kube::core::Selector;
use tokio::sync::watch;
use tracing::Span;

use super::object_version::is_later;
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::annotation;

/// Namespace and name.
pub(super) type Key = (String, String);
/// Every SearchCluster, as the watch shows it.
pub(super) type Clusters = BTreeMap<Key, Arc<SearchCluster>>;

/// One SearchCluster: the object of the watch, or the answer to one of our own calls if that is newer.
pub(super) struct NewestCluster {
    key: Key,
    watched: watch::Receiver<Arc<Clusters>>,
    newest: Option<Arc<SearchCluster>>,
    /// The log span of its task; carries the id of the restart under way.
    span: Span,
}

impl NewestCluster {
    pub(super) fn new(key: Key, watched: watch::Receiver<Arc<Clusters>>, span: Span) -> Self {
        Self { key, watched, newest: None, span }
    }

    pub(super) fn namespace(&self) -> &str {
        &self.key.0
    }

    pub(super) fn name(&self) -> &str {
        &self.key.1
    }

    /// The newest known state, if the SearchCluster still exists.
    pub(super) fn newest(&mut self) -> Option<Arc<SearchCluster>> {
        let watched = self.watched.borrow_and_update().get(&self.key).cloned()?;
        let is_newer = match &self.newest {
            Some(known) if known.uid() == watched.uid() => {
                is_later(&version(&watched), &version(known))
            }
            Some(_) | None => true,
        };
        if is_newer {
            self.newest = Some(watched);
        }
        self.newest.clone()
    }

    /// The state that [`Self::newest`] returned last. A newer one of the watch still counts as a change.
    pub(super) fn looked_at(&self) -> Option<&SearchCluster> {
        self.newest.as_deref()
    }

    /// Remembers the answer to one of our own calls: the watch shows it only later.
    pub(super) fn remember(&mut self, cluster: SearchCluster) -> Arc<SearchCluster> {
        let cluster = Arc::new(cluster);
        self.newest = Some(Arc::clone(&cluster));
        let status = cluster.status.as_ref();
        let restart = status.and_then(|status| status.ledger.restart.as_ref());
        self.span.record("restart", restart.map_or("", |restart| restart.request.id.as_str()));
        cluster
    }

    /// The other SearchClusters of the namespace: name and selector.
    pub(super) fn others(&self) -> Vec<(String, Selector)> {
        let clusters = self.watched.borrow();
        let others = clusters.iter().filter(|(key, _)| **key != self.key && key.0 == self.key.0);
        let selector = |cluster: &SearchCluster| {
            Selector::try_from(cluster.completed_spec().pods.selector.clone()).ok()
        };
        others.filter_map(|(key, other)| Some((key.1.clone(), selector(other)?))).collect()
    }

    /// Completes when the watch shows a state that a decision may depend on, or shows no object any more.
    pub(super) async fn changed(&mut self) {
        loop {
            // The sender lives as long as the controller.
            if self.watched.changed().await.is_err() {
                return;
            }
            let known = self.newest.clone();
            let is_change = match (known, self.newest()) {
                (Some(known), Some(newest)) => {
                    !Arc::ptr_eq(&known, &newest) && !asks_for_the_same(&known, &newest)
                }
                (None, None) => false,
                (Some(_), None) | (None, Some(_)) => true,
            };
            if is_change {
                return;
            }
        }
    }
}

fn version(cluster: &SearchCluster) -> String {
    cluster.resource_version().unwrap_or_default()
}

/// True if no decision depends on the difference between two states of one SearchCluster: our own writes come
/// back through the watch, and other clients write fields that we do not use.
pub(super) fn asks_for_the_same(one: &SearchCluster, other: &SearchCluster) -> bool {
    let (a, b) = (&one.metadata, &other.metadata);
    let ledger =
        |cluster: &SearchCluster| cluster.status.as_ref().map(|status| status.ledger.clone());
    a.uid == b.uid
        && a.generation == b.generation
        && annotations_read(a).eq(annotations_read(b))
        && a.finalizers == b.finalizers
        && a.deletion_timestamp == b.deletion_timestamp
        && ledger(one) == ledger(other)
}

fn annotations_read(metadata: &ObjectMeta) -> impl Iterator<Item = (&String, &String)> {
    let all = metadata.annotations.iter().flatten();
    all.filter(|(key, _)| annotation::is_read(key))
}
