//! Finds the sources of the engine's config in a pod.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use stayput_pod_update::{ConfigNotFound, Unwatched, mounted_config};

use super::{ContainerFacts, DEFAULT_CONTAINER, engine_container};
use crate::cluster::{SearchClusterSpec, Sources};

/// Input for finding the sources of the config in a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindConfig {
    manager_port: u16,
    /// Globs of the spec, in addition to those of the manager.
    live: Vec<String>,
}

impl FindConfig {
    /// The input, if the spec does not name the sources.
    pub fn of(spec: &SearchClusterSpec) -> Option<Self> {
        let live = spec.config.live.clone();
        let find = Self { manager_port: spec.manager.port, live };
        spec.config.sources.is_empty().then_some(find)
    }

    /// The sources that this pod mounts where its manager looks for the config. They are read from the pod
    /// itself, as admission has left it, and not from the template of its owner: that may be newer.
    pub fn find(&self, pod: &Pod) -> Result<Sources, ConfigNotFound> {
        let container = engine_container_of(pod, self.manager_port);
        let config = mounted_config(&json!({"spec": pod.spec}), &container)?;
        Ok(Sources::found(config, &self.live))
    }
}

/// The mounts of this pod's engine container that its manager does not watch.
pub fn unwatched(pod: &Pod, manager_port: u16) -> Vec<Unwatched> {
    let container = engine_container_of(pod, manager_port);
    stayput_pod_update::unwatched(&json!({"spec": pod.spec}), &container)
}

fn engine_container_of(pod: &Pod, manager_port: u16) -> String {
    let annotations = pod.metadata.annotations.as_ref();
    let default = annotations.and_then(|all| all.get(DEFAULT_CONTAINER)).map(String::as_str);
    engine_container(&ContainerFacts::of(pod), manager_port, default).to_owned()
}
