//! The SearchCluster and its pods, as the events of two watches leave them.

use std::collections::BTreeMap;
use std::mem;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::runtime::watcher::{self, Event};

use super::WatchError;
use crate::cluster::SearchCluster;
use crate::kubectl::apiserver::{ApiError, Operation};

/// An event of either watch.
pub(super) enum WatchEvent {
    Cluster(Event<SearchCluster>),
    Pod(Event<Pod>),
}

/// What the watches have delivered so far.
pub(super) struct Objects {
    cluster: Option<SearchCluster>,
    /// The list of SearchClusters that is being read contains ours. If it ends without, ours is gone.
    cluster_in_list: bool,
    /// By name.
    pods: BTreeMap<String, Pod>,
    /// The list of pods that is being read; it replaces the pods once it is complete.
    pod_list: BTreeMap<String, Pod>,
    pods_listed: bool,
}

impl Objects {
    pub(super) const fn new(cluster: SearchCluster) -> Self {
        Self {
            cluster: Some(cluster),
            cluster_in_list: false,
            pods: BTreeMap::new(),
            pod_list: BTreeMap::new(),
            pods_listed: false,
        }
    }

    /// The SearchCluster, unless it was deleted, and its pods; nothing before the pods are listed.
    pub(super) fn complete(
        &self,
    ) -> Option<(Option<&SearchCluster>, impl Iterator<Item = &Pod> + use<'_>)> {
        self.pods_listed.then(|| (self.cluster.as_ref(), self.pods.values()))
    }

    pub(super) fn apply(&mut self, event: WatchEvent) {
        match event {
            WatchEvent::Cluster(event) => self.apply_cluster(event),
            WatchEvent::Pod(event) => self.apply_pod(event),
        }
    }

    fn apply_cluster(&mut self, event: Event<SearchCluster>) {
        match event {
            Event::Apply(cluster) => self.cluster = Some(cluster),
            Event::InitApply(cluster) => {
                self.cluster_in_list = true;
                self.cluster = Some(cluster);
            }
            Event::Delete(_) => self.cluster = None,
            Event::Init => self.cluster_in_list = false,
            Event::InitDone if !self.cluster_in_list => self.cluster = None,
            Event::InitDone => {}
        }
    }

    fn apply_pod(&mut self, event: Event<Pod>) {
        match event {
            Event::Apply(pod) => {
                self.pods.insert(pod.name_any(), pod);
            }
            Event::Delete(pod) => {
                self.pods.remove(&pod.name_any());
            }
            Event::Init => self.pod_list.clear(),
            Event::InitApply(pod) => {
                self.pod_list.insert(pod.name_any(), pod);
            }
            Event::InitDone => {
                self.pods = mem::take(&mut self.pod_list);
                self.pods_listed = true;
            }
        }
    }
}

/// An event; none if the watch broke and tries again by itself; an error if trying again cannot help.
pub(super) fn usable<T>(
    operation: &Operation,
    event: Option<watcher::Result<Event<T>>>,
) -> Result<Option<Event<T>>, WatchError> {
    match event {
        Some(Ok(event)) => Ok(Some(event)),
        Some(Err(
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error),
        )) => {
            let error = ApiError::call(operation, error);
            if error.is_permanent() { Err(error.into()) } else { Ok(None) }
        }
        Some(Err(_)) => Ok(None),
        None => Err(WatchError::StreamEnded),
    }
}
