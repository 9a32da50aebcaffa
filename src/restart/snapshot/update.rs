//! The part of an update that a living pod has already.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stayput_pod_update::PodPatch;

/// A change back that the apiserver would refuse.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Unreturnable {
    /// The patch that was tried.
    pub patch: PodPatch,
    /// For people.
    pub why: String,
}

/// State of a pod that is to be updated; read only while its cluster updates pods.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase", default)]
pub struct LivePod {
    /// The revision of its owner that its label names.
    pub revision: String,
    /// Images in its spec, by container.
    pub images: BTreeMap<String, String>,
    /// `resources` in its spec, by container, as JSON with sorted keys.
    pub resources: BTreeMap<String, String>,
    /// Containers whose resources the kubelet has put into effect as the spec has them.
    pub resized: BTreeSet<String>,
    /// Why the resources in its spec are not in effect, if the kubelet says so.
    pub resize: Option<ResizeState>,
    /// Id of the manager's container; none while none runs.
    pub container_id: Option<String>,
    /// Id of the container of the manager that ended last, if one has.
    pub ended_id: Option<String>,
    /// Reason why the manager's container waits, if the kubelet says that it does.
    pub waiting: Option<ContainerWaiting>,
    /// The other containers, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, OtherContainer>,
    /// Volume claims that it mounts, by name.
    pub claims: BTreeSet<String>,
    /// Where the data of its engine is.
    #[serde(skip_serializing_if = "DataPlace::is_unknown")]
    pub data: DataPlace,
    /// Why no Kubernetes node takes the pod, if the scheduler says that none did.
    pub unschedulable: Option<String>,
}

/// Where the data of an engine is.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum DataPlace {
    /// The engine has not reported its data path.
    #[default]
    Unknown,
    /// On a volume claim.
    Claim,
    /// On another volume, which is deleted with the pod or stays on a Kubernetes node.
    OtherVolume,
    /// On no volume: it is deleted with the container.
    Container,
}

impl DataPlace {
    fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }
}

/// A change of size that the kubelet has not finished.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum ResizeState {
    /// The change waits until there is room.
    Pending(String),
    /// The kubelet has accepted it: a container that it makes now has it. One that runs gets it later.
    InProgress(String),
    /// The Kubernetes node can never give that much.
    Infeasible(String),
}

/// Why a container does not run.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct ContainerWaiting {
    /// One word: `ImagePullBackOff`, `CrashLoopBackOff`, …
    pub reason: String,
    /// For people.
    pub message: String,
}

/// A container beside the manager's.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase", default)]
pub struct OtherContainer {
    /// Id of the container, while it runs.
    pub id: Option<String>,
    /// Id of the container that ended last, if one has.
    pub ended_id: Option<String>,
    /// Reason why the container waits, if the kubelet says that it does.
    pub waiting: Option<ContainerWaiting>,
    /// True if the container runs and is ready.
    pub ready: bool,
}

impl OtherContainer {
    /// Id of the last container that was made.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.id.as_deref().or(self.ended_id.as_deref())
    }
}
