//! The SearchCluster and its pods, as the events of two watches leave them.

use std::collections::BTreeMap;
use std::mem;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::runtime::watcher::{self, Event};

use super::error::WatchError;
use crate::cluster::SearchCluster;
use crate::kubectl::apiserver::{ApiError, Operation};

/// What the watches have delivered so far.
pub(in crate::kubectl) struct Objects {
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
    pub(in crate::kubectl) const fn new(cluster: SearchCluster) -> Self {
        Self {
            cluster: Some(cluster),
            cluster_in_list: false,
            pods: BTreeMap::new(),
            pod_list: BTreeMap::new(),
            pods_listed: false,
        }
    }

    /// The SearchCluster, unless it was deleted, and its pods; nothing before the pods are listed.
    pub(in crate::kubectl) fn complete(
        &self,
    ) -> Option<(Option<&SearchCluster>, impl Iterator<Item = &Pod> + use<'_>)> {
        self.pods_listed.then(|| (self.cluster.as_ref(), self.pods.values()))
    }

    /// The SearchCluster as the watch has delivered it.
    pub(in crate::kubectl) const fn cluster(&self) -> Option<&SearchCluster> {
        self.cluster.as_ref()
    }

    /// Takes an event; none if the watch broke and tries again by itself.
    pub(in crate::kubectl) fn apply_cluster(&mut self, event: Option<Event<SearchCluster>>) {
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

    /// The same for an event about a pod.
    pub(in crate::kubectl) fn apply_pod(&mut self, event: Option<Event<Pod>>) {
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

/// What a watch has said.
pub(super) enum Heard<T> {
    Event(Event<T>),
    /// It broke and tries again by itself; the error, if it could not begin.
    Broken(Option<ApiError>),
}

/// An error if trying again cannot help.
pub(super) fn heard<T>(
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
