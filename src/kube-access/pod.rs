//! Reads a pod, for the controller and `kubectl stayput`. Each field that more than one place needs has one function.

mod containers;
mod probes;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use serde_json::json;
use stayput_pod_update::{ConfigNotFound, Unwatched, manager_option, mounted_config};

use crate::cluster::SearchClusterSpec;
use crate::cluster::Sources;

pub use crate::pod::containers::Containers;
pub use crate::pod::probes::{ProbeTarget, deadly_probe, probe_targets};
pub use stayput_restart::REVISION_LABEL;
use stayput_restart::annotation::ACTUAL_REVISION;

/// The StatefulSet that controls a pod, and its revision that the pod was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub name: String,
    pub uid: String,
    /// Name of the revision that the pod was made from; empty if the pod does not tell.
    pub revision: String,
    /// Name of the revision in the pod's label, which may be ahead of the pod: operators of engines read it.
    pub label: String,
}

impl Owner {
    /// The owner of a pod. A StatefulSet of another API group, such as `apps.kruise.io`, is none: it names and
    /// replaces pods otherwise.
    pub fn of(pod: &Pod) -> Option<Self> {
        let owner = controller(pod)?;
        let is_stateful_set = owner.api_version == "apps/v1" && owner.kind == "StatefulSet";
        let label = pod.labels().get(REVISION_LABEL);
        let revision = pod.annotations().get(ACTUAL_REVISION).or(label);
        is_stateful_set.then(|| Self {
            name: owner.name.clone(),
            uid: owner.uid.clone(),
            revision: revision.cloned().unwrap_or_default(),
            label: label.cloned().unwrap_or_default(),
        })
    }

    /// True if the pod's label names another revision than the one that it was made from.
    pub fn is_label_ahead(&self) -> bool {
        self.label != self.revision
    }
}

/// The object, of any kind, that controls a pod or a StatefulSet.
pub fn controller(object: &impl Resource) -> Option<&OwnerReference> {
    object.meta().owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Name of a pod's engine node: the value of `label`, or else the name of the pod.
pub fn engine_node(pod: &Pod, label: Option<&str>) -> String {
    label.and_then(|label| pod.labels().get(label)).cloned().unwrap_or_else(|| pod.name_any())
}

/// The condition of a pod of this type, such as `PodScheduled`.
pub fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let mut all = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    all.find(|condition| condition.type_ == kind)
}

/// The condition of a pod that is ready; `None` for one that is not.
pub fn ready(pod: &Pod) -> Option<&PodCondition> {
    condition(pod, "Ready").filter(|ready| ready.status == "True")
}

/// The condition of a pod for which the scheduler has found no Kubernetes node; `None` for other pods.
pub fn unschedulable(pod: &Pod) -> Option<&PodCondition> {
    condition(pod, "PodScheduled").filter(|scheduled| scheduled.status == "False")
}

/// True if all containers of a pod have ended for good.
pub fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// The statuses of a pod's init containers and containers, in the order of their starts.
pub fn container_statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let lists = pod
        .status
        .iter()
        .flat_map(|status| [&status.init_container_statuses, &status.container_statuses]);
    lists.flatten().flatten()
}

/// True if a container of the pod ends again and again, so that the kubelet waits before it starts it.
pub fn is_crash_looping(pod: &Pod) -> bool {
    let waiting = |one: &ContainerStatus| one.state.as_ref()?.waiting.as_ref()?.reason.clone();
    container_statuses(pod).filter_map(waiting).any(|reason| reason == "CrashLoopBackOff")
}

/// True for an init container that runs as long as the pod.
pub fn is_sidecar(init_container: &Container) -> bool {
    init_container.restart_policy.as_deref() == Some("Always")
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
        let containers = Containers::of(pod);
        let container = containers.engine(self.manager_port);
        let config = mounted_config(&json!({"spec": pod.spec}), container)?;
        Ok(Sources::found(config, &self.live))
    }
}

/// The mounts of this pod's engine container that its manager does not watch.
pub fn unwatched(pod: &Pod, manager_port: u16) -> Vec<Unwatched> {
    let containers = Containers::of(pod);
    stayput_pod_update::unwatched(&json!({"spec": pod.spec}), containers.engine(manager_port))
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
    let containers = Containers::of(pod);
    let name = containers.engine(manager_port);
    let spec = pod.spec.as_ref()?;
    let container = spec.containers.iter().find(|one| one.name == name)?;
    let file = manager_option(&json!(container), "tls-cert").ok()?.pop()?;
    let (directory, _) = file.rsplit_once('/')?;
    let mut mounts = container.volume_mounts.iter().flatten();
    let mount = mounts.find(|mount| mount.mount_path.trim_end_matches('/') == directory)?;
    let mut volumes = spec.volumes.iter().flatten();
    let volume = volumes.find(|volume| volume.name == mount.name)?;
    volume.secret.as_ref()?.secret_name.clone()
}
