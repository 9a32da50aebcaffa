//! One pod in a snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shell::shell_word;
use crate::snapshot::{Known, Manager, Operator, known};
use crate::{Policy, Time};
use stayput_api::State;
use stayput_pod_update::{PodPatch, PodUpdate, UpdateStep};

/// A pod, as far as decisions need it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pod {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.name`.
    pub name: String,
    /// Name of its engine node.
    pub node: String,
    /// Name of the manager's container, for commands in messages, if it is certain.
    pub container: Option<String>,
    /// Path with which the container starts the manager, for commands in messages; absent where the
    /// image starts it: there the program is in PATH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Our annotations on it.
    pub annotations: BTreeMap<String, String>,
    /// Who applies the phase on it as part of a configuration, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_applied_by: Option<String>,
    /// The operator that makes it, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<Operator>,
    /// True if the pod's containers are ready.
    pub ready: bool,
    /// True if the pod is being deleted.
    pub terminating: bool,
    /// A container of it is crash-looping.
    pub crash_looping: bool,
    /// Why the manager's container has never run; `None` if it has, or if nothing says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_started: Option<NotStarted>,
    /// Why its owner is going to replace it, for people (`owner_will_replace`).
    pub outdated: Option<String>,
    /// The probe that would kill the container while the engine is stopped, for
    /// people (`liveness_would_kill`).
    pub deadly_probe: Option<String>,
    /// Progress of the node in leaving the cluster, for people, if it leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving: Option<String>,
    /// Checksum of the config in its sources now.
    pub sources: Sources,
    /// True if the engine runs on a config that differs from its sources only in parts that do not
    /// count (`stayput.dev/ignore`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignores_change: bool,
    /// The Secrets and ConfigMaps that its config is made from, for people; empty if not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_from: Vec<String>,
    /// State of the pod for Services, which decides if they send it requests; read only while its
    /// manager drains.
    #[serde(with = "known")]
    #[schemars(with = "known::Written<Endpoint>")]
    pub endpoint: Known<Endpoint>,
    /// Time since which Services are known to send no requests to the pod; absent if they do, or if this
    /// is not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unserved_since: Option<Time>,
    /// The update that brings the pod to the template that its owner wants; absent if it has that
    /// template, or if templates are not carried out here (`spec.update`).
    #[serde(with = "known")]
    #[schemars(with = "known::Written<Option<PodUpdate>>")]
    pub update: Known<Option<PodUpdate>>,
    /// Label of the pod, if that names another revision than the pod was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<Box<LabelAhead>>,
    /// The parts of its spec and status that an update needs, if templates are carried out here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Box<LivePod>>,
    /// Why the apiserver would not delete the pod, for people; absent if it would, or if nobody asked
    /// since the pod is not to be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undeletable: Option<String>,
    /// Why the apiserver would not give the pod the images and sizes of its template, for people; absent
    /// if it would, or if nobody asked since the pod is to have no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchangeable: Option<String>,
    /// The part of the pod's update that the apiserver would not roll back; absent if it would, or if no
    /// update is rolled back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreturnable: Option<Box<Unreturnable>>,
    /// Why another pod in its place would fit nowhere, or why its Kubernetes node has no room for its
    /// new size (`would_not_fit`), for people; absent if there is room, or if neither is planned.
    #[serde(with = "known", default = "fits")]
    #[schemars(with = "known::Written<Option<String>>")]
    pub room: Known<Option<String>>,
    /// Uids of the volume claims that it mounts, by name, as far as they may be read; read only of a pod
    /// that is to be replaced, and of the one in its place.
    #[serde(with = "known", default = "unread_claims", skip_serializing_if = "are_unread")]
    #[schemars(with = "known::Written<BTreeMap<String, String>>")]
    pub claim_uids: Known<BTreeMap<String, String>>,
    /// State of the manager.
    #[serde(with = "known")]
    #[schemars(with = "known::Written<Manager>")]
    pub manager: Known<Manager>,
}

/// Why no container of a manager has run in its pod yet, as the scheduler or the kubelet says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotStarted {
    /// The container that keeps the pod from starting; `None` if no Kubernetes node has taken the pod.
    pub container: Option<String>,
    /// One word of Kubernetes: `Unschedulable`, `ImagePullBackOff`, `CrashLoopBackOff`, …
    pub reason: String,
    /// The sentence of Kubernetes; may be empty.
    pub message: String,
}

impl NotStarted {
    /// The reason while nothing hinders the pod, as far as Kubernetes says.
    pub const CREATING: &'static str = "ContainerCreating";
}

impl fmt::Display for NotStarted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(container) = &self.container {
            write!(out, "container {container}: ")?;
        }
        let (reason, message) = (&self.reason, self.message.trim_end_matches('.'));
        if message.is_empty() {
            write!(out, "{reason}")
        } else {
            write!(out, "{reason}: {message}")
        }
    }
}

/// A pod that is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissingPod {
    /// The name that it is to have.
    pub name: String,
    /// The StatefulSet that wants it.
    pub set: String,
}

const fn unread_claims() -> Known<BTreeMap<String, String>> {
    Ok(BTreeMap::new())
}

fn are_unread(uids: &Known<BTreeMap<String, String>>) -> bool {
    uids.as_ref().is_ok_and(BTreeMap::is_empty)
}

const fn fits() -> Known<Option<String>> {
    Ok(None)
}

/// Arguments of `kubectl exec` that run the manager's program in a pod. `container` and `program` are as
/// in [`Pod`].
#[must_use]
pub fn exec_manager(pod: &str, container: Option<&str>, program: Option<&str>) -> String {
    let container = container.map_or_else(String::new, |name| format!(" -c {name}"));
    format!("{pod}{container} -- {}", shell_word(program.unwrap_or("stayput")))
}

impl Pod {
    /// True if the engine runs on another config than its sources have, and the difference counts. Does
    /// not check that the manager belongs to the pod.
    pub(crate) fn drifts(&self) -> bool {
        let runs = self.manager.as_ref().is_ok_and(|manager| manager.state == State::Running);
        runs && !self.ignores_change && self.change().is_some()
    }

    /// Turns an update that resizes the pod into one that replaces it, if it has never started and
    /// another pod is allowed: a new size of a pod that waits for a Kubernetes node may never come
    /// into effect.
    pub fn replace_unstarted(&mut self, policy: &Policy) {
        if let (Some(_), Ok(Some(update))) = (&self.not_started, &mut self.update)
            && update.step == UpdateStep::Resize
            && policy.update.contains(&UpdateStep::Replace)
        {
            update.step = UpdateStep::Replace;
        }
    }

    /// Turns an update with other variables of the engine into one that replaces the pod, if its manager does not give
    /// them to the engine: it is older than the template's options.
    pub fn replace_unknowing(&mut self) {
        if let (Ok(manager), Ok(Some(update))) = (&self.manager, &mut self.update)
            && !manager.gives_variables()
            && update.patch.variables.take().is_some()
            && update.step.is_of_a_restart()
        {
            update.step = UpdateStep::Replace;
            let version = &manager.version;
            update
                .because
                .push(format!("its manager {version} gives its engine no other variables"));
        }
    }

    /// The checksums of the config that the engine runs on and of the one in its sources, if they are
    /// known to differ.
    pub fn change(&self) -> Option<(&str, &str)> {
        self.checksums().filter(|(runs_on, wanted)| runs_on != wanted)
    }

    /// The checksums of the config on which the engine's last run was begun and of the one in its
    /// sources, if both are known. Does not check that the manager belongs to the pod.
    pub(crate) fn checksums(&self) -> Option<(&str, &str)> {
        let (Sources::Checksum(wanted), Ok(manager)) = (&self.sources, &self.manager) else {
            return None;
        };
        let runs_on = manager.runs_on()?;
        Some((runs_on, wanted))
    }
}

/// A pod in the EndpointSlices of its namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Endpoint {
    /// None has it: no Service selects it.
    Absent,
    /// Each that has it shows it as not ready.
    NotReady,
    /// One has it as ready.
    Ready,
}

/// The config's sources, as they are in the apiserver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Sources {
    /// None are named and none are found: the mounted config is expected. The message says why.
    Unknown(String),
    /// All were read.
    Checksum(String),
    /// One is absent or cannot be read: never drift. The message names it.
    Absent(String),
}

/// A change back that the apiserver would refuse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unreturnable {
    /// The patch that was tried.
    pub patch: PodPatch,
    /// For people.
    pub why: String,
}

/// The label of an operator's pod that names a revision which the pod was not made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelAhead {
    /// The revision in the label.
    pub revision: String,
    /// Since when the label has it, as far as looks have shown.
    #[serde(default)]
    pub since: Time,
    /// The other labels and the annotations that change when the label goes back to the revision that the pod was
    /// made from.
    #[serde(with = "known")]
    #[schemars(with = "known::Written<PodPatch>")]
    pub back: Known<PodPatch>,
}

/// State of a pod that is to be updated; read only while its cluster updates pods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LivePod {
    /// The revision of its owner that it was made from.
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
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerWaiting {
    /// One word: `ImagePullBackOff`, `CrashLoopBackOff`, …
    pub reason: String,
    /// For people.
    pub message: String,
}

/// A container beside the manager's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
