//! Reads the objects of pods and StatefulSets, for the controller and `kubectl stayput`.

mod probes;
mod set;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use serde_json::{Value, json};
use stayput_pod_update::{ConfigNotFound, Unwatched, manager_option, mounted_config};

use crate::cluster::SearchClusterSpec;
use crate::cluster::Sources;

pub use crate::workload::probes::{ProbeTarget, deadly_probe, probe_targets};
pub use crate::workload::set::{
    DEFAULT_CONTAINER, NotComparable, Revision, Set, engine_container, replaces, update,
};

/// Label with the revision of its StatefulSet that a pod was made from.
pub const REVISION_LABEL: &str = "controller-revision-hash";

/// True for a StatefulSet of Kubernetes' own: others make pods of the same kind and name otherwise, such as
/// `apps.kruise.io`.
pub fn is_stateful_set(owner: &OwnerReference) -> bool {
    owner.api_version == "apps/v1" && owner.kind == "StatefulSet"
}

/// True if all containers of a pod have ended for good.
pub fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// The number at the end of the name of a StatefulSet's pod.
pub fn ordinal(pod_name: &str) -> Option<i64> {
    pod_name.rsplit_once('-')?.1.parse().ok()
}

/// Facts about a container that show if the manager runs in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerFacts {
    name: String,
    /// Ports that the container's spec names.
    ports: Vec<i32>,
    /// Path of the program with which the container starts the manager; `None` if the image does that.
    program: Option<String>,
}

impl ContainerFacts {
    /// The facts of all containers of a pod.
    pub fn of(pod: &Pod) -> Vec<Self> {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        containers
            .map(|container| Self {
                name: container.name.clone(),
                ports: container.ports.iter().flatten().map(|port| port.container_port).collect(),
                program: (container.command.iter().flatten().next())
                    .filter(|program| program.ends_with("/stayput"))
                    .cloned(),
            })
            .collect()
    }
}

/// Path of the program with which this container starts the manager; `None` if its image does that.
pub fn program_of<'a>(containers: &'a [ContainerFacts], name: &str) -> Option<&'a str> {
    containers.iter().find(|container| container.name == name)?.program.as_deref()
}

/// The container that names this port; if none does, the only one.
pub fn container_with(containers: &[ContainerFacts], port: u16) -> Option<&str> {
    let named = containers.iter().find(|container| container.ports.contains(&i32::from(port)));
    let only = containers.first().filter(|_| containers.len() == 1);
    named.or(only).map(|container| container.name.as_str())
}

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

/// Name of the container of this pod in which the manager runs.
pub fn engine_container_of(pod: &Pod, manager_port: u16) -> String {
    let default = pod.annotations().get(DEFAULT_CONTAINER).map(String::as_str);
    engine_container(&ContainerFacts::of(pod), manager_port, default).to_owned()
}

/// Variable by which a manager knows its pod. Nobody can add it to a living pod.
const POD_UID: &str = "STAYPUT_POD_UID";

/// True if a manager runs in a pod: its author wants it to be restarted from here. The policies of `deploy/`
/// check the same.
pub fn runs_manager(pod: &Pod) -> bool {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut variables = containers.flat_map(|container| container.env.iter().flatten());
    variables.any(|variable| variable.name == POD_UID)
}

/// The Secrets that a pod mounts.
pub fn mounted_secrets(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.flat_map(|volume| {
        let direct = volume.secret.as_ref().and_then(|secret| secret.secret_name.as_deref());
        let parts =
            volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
        let projected =
            parts.filter_map(|part| part.secret.as_ref().map(|secret| secret.name.as_str()));
        direct.into_iter().chain(projected)
    })
}

/// Name of the Secret, found from `--tls-cert` and the volumes of the pod, if it is written there.
pub fn serving_secret(pod: &Pod, manager_port: u16) -> Option<String> {
    let name = engine_container_of(pod, manager_port);
    let spec = json!(pod.spec);
    let list = |at: &Value, field: &str| at[field].as_array().cloned().unwrap_or_default();
    let container = list(&spec, "containers").into_iter().find(|one| one["name"] == name)?;
    let file = manager_option(&container, "tls-cert").ok()?.pop()?;
    let (directory, _) = file.rsplit_once('/')?;
    let is_there = |mount: &&Value| {
        mount["mountPath"].as_str().is_some_and(|path| path.trim_end_matches('/') == directory)
    };
    let mounts = list(&container, "volumeMounts");
    let mount = mounts.iter().find(is_there)?;
    let volume = list(&spec, "volumes").into_iter().find(|one| one["name"] == mount["name"])?;
    volume["secret"]["secretName"].as_str().map(str::to_owned)
}
