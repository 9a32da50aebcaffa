//! What the objects of pods and StatefulSets say, as the controller and `kubectl stayput` both read
//! them.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;

/// Label with the revision of its StatefulSet that a pod was made from.
pub(crate) const REVISION_LABEL: &str = "controller-revision-hash";

/// The number at the end of the name of a StatefulSet's pod.
pub(crate) fn ordinal(pod_name: &str) -> Option<i64> {
    pod_name.rsplit_once('-')?.1.parse().ok()
}

/// The number of the set's first pod.
pub(crate) fn first_ordinal(set: &StatefulSet) -> i64 {
    let ordinals = set.spec.as_ref().and_then(|spec| spec.ordinals.as_ref());
    ordinals.and_then(|ordinals| ordinals.start).unwrap_or_default().into()
}

/// Whether the set replaces pods only after they were deleted. Any strategy but `OnDelete` replaces
/// them by itself.
pub(crate) fn is_on_delete(set: &StatefulSet) -> bool {
    let strategy = set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete")
}

/// The generation of the set's spec, if its controller has not seen that yet.
pub(crate) fn unseen_generation(set: &StatefulSet) -> Option<i64> {
    let status = set.status.as_ref();
    let seen = status.and_then(|status| status.observed_generation).unwrap_or_default();
    set.metadata.generation.filter(|generation| *generation > seen)
}

/// A container, and the ports that its spec names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainerPorts {
    name: String,
    ports: Vec<i32>,
}

impl ContainerPorts {
    /// Those of all containers of a pod.
    pub(crate) fn of(pod: &Pod) -> Vec<Self> {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        containers
            .map(|container| Self {
                name: container.name.clone(),
                ports: container.ports.iter().flatten().map(|port| port.container_port).collect(),
            })
            .collect()
    }
}

/// The container that names this port; if none does, the only one.
pub(crate) fn container_with(containers: &[ContainerPorts], port: u16) -> Option<&str> {
    let named = containers.iter().find(|container| container.ports.contains(&i32::from(port)));
    let only = containers.first().filter(|_| containers.len() == 1);
    named.or(only).map(|container| container.name.as_str())
}
