//! The container of a pod in which the manager runs.

use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt;

/// Annotation with the container that `kubectl exec` uses.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// The facts about a pod's containers that show in which of them the manager runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Containers {
    all: Vec<Candidate>,
    /// The container that `kubectl exec` uses, if the pod tells.
    default: Option<String>,
}

/// A container in which the manager may run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    name: String,
    /// Ports that the container's spec names.
    ports: Vec<i32>,
    /// Path of the program with which the container starts the manager; `None` if the image does that.
    program: Option<String>,
}

impl Candidate {
    fn of(container: &Container) -> Self {
        let program = container.command.iter().flatten().next();
        Self {
            name: container.name.clone(),
            ports: container.ports.iter().flatten().map(|port| port.container_port).collect(),
            program: program.filter(|program| program.ends_with("/stayput")).cloned(),
        }
    }
}

impl Containers {
    /// The containers of this pod.
    pub fn of(pod: &Pod) -> Self {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        Self {
            all: containers.map(Candidate::of).collect(),
            default: pod.annotations().get(DEFAULT_CONTAINER).cloned(),
        }
    }

    /// The container that names this port; if none does, the only one.
    pub fn with_port(&self, port: u16) -> Option<&str> {
        let named = self.all.iter().find(|one| one.ports.contains(&i32::from(port)));
        let only = self.all.first().filter(|_| self.all.len() == 1);
        named.or(only).map(|one| one.name.as_str())
    }

    /// The container in which the manager runs: the one that names its port, or else the one that
    /// `kubectl exec` uses, or the first. Empty for a pod without containers.
    pub fn engine(&self, manager_port: u16) -> &str {
        let first = || self.all.first().map(|one| one.name.as_str());
        let named = self.with_port(manager_port).or(self.default.as_deref());
        named.or_else(first).unwrap_or_default()
    }

    /// Path of the program with which the engine's container starts the manager; `None` if its image does
    /// that.
    pub fn program(&self, manager_port: u16) -> Option<&str> {
        let engine = self.engine(manager_port);
        self.all.iter().find(|one| one.name == engine)?.program.as_deref()
    }
}
