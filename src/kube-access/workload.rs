//! Reads the objects of pods and StatefulSets, for the controller and `kubectl stayput`.

mod comparison;
mod config;
mod mounted;
mod probes;
mod rollout;
mod serving;
mod set;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

pub use comparison::{DEFAULT_CONTAINER, NotComparable, Revision, engine_container, update};
pub use config::{FindConfig, unwatched};
pub use mounted::{mounted_secrets, runs_manager};
pub use probes::{ProbeTarget, deadly_probe, probe_targets};
pub use rollout::replaces;
pub use serving::serving_secret;
pub use set::Set;

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
