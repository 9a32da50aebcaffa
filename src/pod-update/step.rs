//! The steps that bring a pod to the wanted state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a pod gets to what is wanted, from the least to the most that it costs. The highest of
/// several does the work of all of them, with one stop.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum UpdateStep {
    /// Nothing differs.
    None,
    /// The pod is patched; the engine goes on.
    Relabel,
    /// The engine's process is started anew; containers beside it may get other images meanwhile.
    Restart,
    /// The kubelet makes a new container in the same pod.
    Container,
    /// CPU and memory of the pod change between stop and start.
    Resize,
    /// The pod is deleted; its owner makes another one of the same name, with the same claims.
    Replace,
    /// The node leaves the cluster, and its data goes to others before.
    Move,
}

/// The step in the place of this one where the kubelet makes no other container in the same pod.
#[must_use]
pub(crate) fn without_another_container(step: UpdateStep) -> UpdateStep {
    if step == UpdateStep::Container { UpdateStep::Replace } else { step }
}

impl UpdateStep {
    /// True if the step is carried out by a restart of the node.
    pub fn is_of_a_restart(self) -> bool {
        (Self::Restart..Self::Move).contains(&self)
    }

    /// The name that people and programs read.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Relabel => "relabel",
            Self::Restart => "restart",
            Self::Container => "container",
            Self::Resize => "resize",
            Self::Replace => "replace",
            Self::Move => "move",
        }
    }

    /// The part of the pod that the step keeps, for people.
    pub fn keeps(self) -> &'static str {
        match self {
            Self::None => "everything",
            Self::Relabel => "the engine's process",
            Self::Restart => "container, pod, address and volumes",
            Self::Container => "pod, address and volumes",
            Self::Resize => "pod, address, volumes, and the container unless a field needs another",
            Self::Replace => "name and volume claims",
            Self::Move => "the data",
        }
    }
}
