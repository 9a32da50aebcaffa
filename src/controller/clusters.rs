//! The SearchClusters as the watch shows them, the newest known state of one of them, and those that cannot
//! be decoded: edited by hand, or written by another version. Each of these is reported in the log, in an
//! event and as a metric, and left alone until it can be decoded again.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::ObjectMeta;
use kube::core::{DeserializeGuard, Selector};
use kube::runtime::events::{Event, EventType};
use kube::{Resource, ResourceExt};
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::annotation;
use tokio::sync::watch;
use tracing::{Instrument, Span};

use crate::apiserver::Apiserver;
use crate::event_recorder::{publish, reporter};
use crate::metrics::Metrics;

/// Namespace and name.
pub(super) type Key = (String, String);
/// Every SearchCluster, as the watch shows it.
pub(super) type Clusters = BTreeMap<Key, Arc<SearchCluster>>;

/// One SearchCluster: the object of the watch, or the answer to one of our own calls if that is newer.
pub(super) struct LiveCluster {
    key: Key,
    watched: watch::Receiver<Arc<Clusters>>,
    newest: Option<Arc<SearchCluster>>,
    /// The log span of its task; carries the id of the restart under way.
    span: Span,
}

impl LiveCluster {
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

    /// Replaces the object by the answer to one of our own calls: the watch shows it only later.
    pub(super) fn replace(&mut self, cluster: SearchCluster) -> Arc<SearchCluster> {
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

/// True if an object of this version is later than one that was read. Versions of one kind of object grow,
/// and the cache of an apiserver may be behind the object that was read. Versions that are no numbers cannot
/// be compared: a different one counts as later.
pub(super) fn is_later(version: &str, read: &str) -> bool {
    match (version.parse::<u64>(), read.parse::<u64>()) {
        (Ok(version), Ok(read)) => version > read,
        _ => version != read,
    }
}

/// All SearchClusters that cannot be decoded.
#[derive(Debug, Default)]
pub(super) struct Undecodable {
    known: BTreeMap<Key, Entry>,
}

#[derive(Debug)]
struct Entry {
    reference: ObjectReference,
    message: String,
    is_reported: bool,
    /// True if the object is in the list that is being read.
    is_listed: bool,
}

impl Undecodable {
    /// The object, if it can be decoded.
    pub(super) fn decode(
        &mut self,
        key: Key,
        read: DeserializeGuard<SearchCluster>,
    ) -> Option<SearchCluster> {
        let reference = read.object_ref(&());
        match read.0 {
            Ok(cluster) => {
                self.known.remove(&key);
                Some(cluster)
            }
            Err(invalid) => {
                let message = format!(
                    "SearchCluster {}/{} cannot be decoded and is not reconciled: {}; correct what \
                     was edited by hand, or use the version of the reconciler that wrote it",
                    key.0, key.1, invalid.error
                );
                let before = self.known.get(&key).filter(|one| one.message == message);
                let is_reported = before.is_some_and(|one| one.is_reported);
                let entry = Entry { reference, message, is_reported, is_listed: true };
                self.known.insert(key, entry);
                None
            }
        }
    }

    /// Forgets an object that is deleted.
    pub(super) fn remove(&mut self, key: &Key) {
        self.known.remove(key);
    }

    /// Begins a new list of a namespace; without one, of all namespaces.
    pub(super) fn begin_list(&mut self, namespace: Option<&str>) {
        let of = |key: &Key| namespace.is_none_or(|namespace| key.0 == namespace);
        self.known.iter_mut().filter(|(key, _)| of(key)).for_each(|(_, one)| one.is_listed = false);
    }

    /// Ends a list: objects that were not in it are deleted.
    pub(super) fn end_list(&mut self, namespace: Option<&str>) {
        let of = |key: &Key| namespace.is_none_or(|namespace| key.0 == namespace);
        self.known.retain(|key, one| one.is_listed || !of(key));
    }

    /// Reports the new ones. No task waits until the events are sent.
    pub(super) fn report(&mut self, api: &Apiserver, metrics: &Metrics, instance: &str) {
        let names = self.known.keys().map(|(namespace, name)| format!("{namespace}/{name}"));
        metrics.set_undecodable(names.collect());
        for ((namespace, name), one) in &mut self.known {
            if std::mem::replace(&mut one.is_reported, true) {
                continue;
            }
            let cluster = format!("{namespace}/{name}");
            tracing::error!(cluster, "{}", one.message);
            let reference = one.reference.clone();
            // An event may have 1 KiB; the log has the whole message.
            let note: String = one.message.chars().take(250).collect();
            let event = Event {
                type_: EventType::Warning,
                reason: "DecodeFailed".into(),
                note: Some(note),
                action: "Decode".into(),
                secondary: None,
            };
            let send = publish(api.clone(), reporter(instance), event, reference);
            tokio::spawn(send.instrument(tracing::error_span!("cluster", cluster)));
        }
    }
}

#[cfg(test)]
mod tests;
