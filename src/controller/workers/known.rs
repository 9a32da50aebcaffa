//! The SearchClusters that the watches have shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event};

use crate::applied::owns_phase;
use crate::clusters::{Clusters, Key};
use crate::undecodable::Undecodable;
use stayput_kube_access::cluster::SearchCluster;

/// Object of a watch event. One that cannot be decoded (edited by hand, of another version) must not hide the
/// others.
pub(super) type Object = DeserializeGuard<SearchCluster>;

/// The SearchClusters that the watches have shown, and which watches are in sync.
pub(super) struct Known {
    pub(super) clusters: Clusters,
    pub(super) undecodable: Undecodable,
    /// Watches that are not in sync yet, by namespace; `None` is the watch of all namespaces.
    missing: Vec<Option<String>>,
    /// Watches that we are not allowed to set up, by namespace.
    forbidden: BTreeSet<Option<String>>,
    listings: BTreeMap<Option<String>, Clusters>,
}

impl Known {
    pub(super) fn new(namespaces: &[String]) -> Self {
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
    pub(super) fn is_complete(&self, namespace: &str) -> bool {
        let is_in = |missing: &Option<String>| missing.as_deref().is_none_or(|of| of == namespace);
        !self.missing.iter().any(is_in)
    }

    /// True if all SearchClusters that we are allowed to watch are known, and at least one watch is allowed.
    pub(super) fn is_ready(&self) -> bool {
        let forbidden =
            |missing: &Option<String>| missing.is_some() && self.forbidden.contains(missing);
        self.missing.iter().all(forbidden)
    }

    /// Records a watch that we are not allowed to set up.
    pub(super) fn note_error(&mut self, namespace: Option<String>, error: &watcher::Error) {
        if let watcher::Error::InitialListFailed(kube::Error::Api(status)) = error
            && status.code == 403
        {
            self.forbidden.insert(namespace);
        }
    }

    /// Applies an event of a watch. True if the SearchClusters have changed.
    pub(super) fn apply(&mut self, namespace: Option<String>, event: Event<Object>) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::watch_error;

    #[test]
    fn a_namespace_that_must_not_be_seen_keeps_no_other_waiting() {
        let mut known = Known::new(&["a".into(), "b".into()]);
        known.apply(Some("a".into()), Event::Init);
        known.apply(Some("a".into()), Event::InitDone);
        assert!(known.is_complete("a") && !known.is_complete("b") && !known.is_ready());
        let status = kube::core::Status { code: 403, ..kube::core::Status::default() };
        let forbidden = kube::Error::Api(Box::new(status));
        let error = watcher::Error::InitialListFailed(forbidden);
        assert!(watch_error("searchclusters", Some("b"), &error).contains("roles of deploy/"));
        known.note_error(Some("b".into()), &error);
        assert!(known.is_ready() && !known.is_complete("b"));
    }
}
