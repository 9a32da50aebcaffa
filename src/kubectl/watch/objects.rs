//! The SearchCluster and its pods, from the events of two watches.

use std::collections::BTreeMap;
use std::mem;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::runtime::watcher;
use kube::runtime::watcher::Event;
use stayput_kube_access::cluster::SearchCluster;

use crate::apiserver::{ApiError, Operation};
use crate::watch::error::WatchError;

/// Objects that the watches have delivered so far.
pub(crate) struct Objects {
    cluster: Option<SearchCluster>,
    /// True if the list of SearchClusters that is being read contains ours. If the list ends without it,
    /// ours is gone.
    cluster_in_list: bool,
    /// Pods by name.
    pods: BTreeMap<String, Pod>,
    /// The list of pods that is being read; it replaces the pods once it is complete.
    pod_list: BTreeMap<String, Pod>,
    pods_listed: bool,
}

impl Objects {
    pub(crate) const fn new(cluster: SearchCluster) -> Self {
        Self {
            cluster: Some(cluster),
            cluster_in_list: false,
            pods: BTreeMap::new(),
            pod_list: BTreeMap::new(),
            pods_listed: false,
        }
    }

    /// The SearchCluster, unless it was deleted, and its pods, once the pods are listed.
    pub(crate) fn complete(
        &self,
    ) -> Option<(Option<&SearchCluster>, impl Iterator<Item = &Pod> + use<'_>)> {
        self.pods_listed.then(|| (self.cluster.as_ref(), self.pods.values()))
    }

    /// The SearchCluster as the watch has delivered it.
    pub(crate) const fn cluster(&self) -> Option<&SearchCluster> {
        self.cluster.as_ref()
    }

    /// Takes an event about the SearchCluster; `None` after a watch broke, which retries by itself.
    pub(crate) fn apply_cluster(&mut self, event: Option<Event<SearchCluster>>) {
        match event {
            Some(Event::Apply(cluster)) => self.cluster = Some(cluster),
            Some(Event::InitApply(cluster)) => {
                self.cluster_in_list = true;
                self.cluster = Some(cluster);
            }
            Some(Event::Delete(_)) => self.cluster = None,
            Some(Event::Init) => self.cluster_in_list = false,
            Some(Event::InitDone) if !self.cluster_in_list => self.cluster = None,
            Some(Event::InitDone) | None => {}
        }
    }

    /// Takes an event about a pod; `None` after a watch broke, which retries by itself.
    pub(crate) fn apply_pod(&mut self, event: Option<Event<Pod>>) {
        match event {
            Some(Event::Apply(pod)) => {
                self.pods.insert(pod.name_any(), pod);
            }
            Some(Event::Delete(pod)) => {
                self.pods.remove(&pod.name_any());
            }
            Some(Event::Init) => self.pod_list.clear(),
            Some(Event::InitApply(pod)) => {
                self.pod_list.insert(pod.name_any(), pod);
            }
            Some(Event::InitDone) => {
                self.pods = mem::take(&mut self.pod_list);
                self.pods_listed = true;
            }
            None => {}
        }
    }
}

/// An item from a watch.
pub(crate) enum Heard<T> {
    Event(Event<T>),
    /// The watch broke and retries by itself; with the error, if it could not begin.
    Broken(Option<ApiError>),
}

/// Sorts an item of a watch; an error if a retry cannot help.
pub(crate) fn heard<T>(
    operation: &Operation,
    event: Option<watcher::Result<Event<T>>>,
) -> Result<Heard<T>, WatchError> {
    let (error, has_begun) = match event {
        Some(Ok(event)) => return Ok(Heard::Event(event)),
        None => return Err(WatchError::StreamEnded),
        Some(Err(
            watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error),
        )) => (error, false),
        // Each watch ends at some time, and begins again.
        Some(Err(watcher::Error::WatchFailed(error))) => (error, true),
        Some(Err(_)) => return Ok(Heard::Broken(None)),
    };
    let error = ApiError::call(operation, error);
    if error.is_permanent() {
        return Err(error.into());
    }
    Ok(Heard::Broken((!has_begun).then_some(error)))
}
