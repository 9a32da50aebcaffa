//! Facts of a pod's spec and status that an update needs. Kept only while its cluster updates pods.

use std::collections::{BTreeMap, BTreeSet};

use json_patch::jsonptr::PointerBuf;
use k8s_openapi::api::core::v1::{
    Container, ContainerStatus, Pod, PodCondition, PodStatus, Volume,
};
use serde_json::Value;

use stayput_kube_access::patch_operations::place;
use stayput_kube_access::pod;
use stayput_restart::{ContainerWaiting, DataPlace, LivePod, OtherContainer, ResizeState};

mod data;

pub(crate) use crate::pods::live::data::is_data_elsewhere;

/// Facts of a pod's spec and status that an update needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LiveFacts {
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) containers: Vec<LiveContainer>,
    resize: Option<ResizeState>,
    claims: BTreeSet<String>,
    unschedulable: Option<String>,
    /// The Kubernetes node that the pod is on.
    pub(crate) kubernetes_node: Option<String>,
}

/// A container, or an init container, of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LiveContainer {
    pub(crate) name: String,
    /// JSON pointer to the container in the pod: `/spec/containers/0`.
    pub(crate) place: PointerBuf,
    pub(crate) image: String,
    /// Requests and limits as JSON with sorted keys.
    pub(crate) resources: String,
    /// Variables with values of their own, by name.
    pub(crate) variables: BTreeMap<String, String>,
    is_resized: bool,
    id: Option<String>,
    ended_id: Option<String>,
    waiting: Option<ContainerWaiting>,
    /// Volume mounts of the container, in their order.
    mounts: Vec<data::Mount>,
    ready: bool,
    /// True for an init container that ends before the others start. The kubelet does not make it anew.
    runs_once: bool,
}

impl LiveFacts {
    pub(super) fn of(pod: &Pod) -> Self {
        let (spec, status) = (pod.spec.as_ref(), pod.status.as_ref());
        let main = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
        let init = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
        let statuses: BTreeMap<&str, &ContainerStatus> =
            pod::container_statuses(pod).map(|status| (status.name.as_str(), status)).collect();
        let volumes = spec.and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
        let containers = [("containers", main), ("initContainers", init)]
            .into_iter()
            .flat_map(|(list, containers)| {
                let at = move |index: usize| place(["spec", list, &index.to_string()]);
                containers.iter().enumerate().map(move |(index, container)| (at(index), container))
            })
            .map(|(place, container)| {
                let status = statuses.get(container.name.as_str()).copied();
                LiveContainer::of(place, container, status, volumes)
            })
            .collect();
        Self {
            annotations: pod.metadata.annotations.clone().unwrap_or_default(),
            containers,
            resize: status.and_then(|status| resize_state(status, pod.metadata.generation)),
            claims: volumes
                .iter()
                .filter_map(|volume| {
                    Some(volume.persistent_volume_claim.as_ref()?.claim_name.clone())
                })
                .collect(),
            unschedulable: pod::unschedulable(pod)
                .map(|refused| refused.message.clone().unwrap_or_default()),
            kubernetes_node: spec.and_then(|spec| spec.node_name.clone()),
        }
    }

    /// The facts as decisions use them; `manager` is the container in which the manager runs. Leaves out the
    /// place of the data, which depends on the engine: see [`Self::data_place`].
    pub(crate) fn for_decisions(&self, revision: &str, manager: &str) -> LivePod {
        let by_name = |value: fn(&LiveContainer) -> String| -> BTreeMap<String, String> {
            self.containers.iter().map(|each| (each.name.clone(), value(each))).collect()
        };
        let engine = self.containers.iter().find(|container| container.name == manager);
        LivePod {
            revision: revision.to_owned(),
            images: by_name(|container| container.image.clone()),
            resources: by_name(|container| container.resources.clone()),
            resized: self
                .containers
                .iter()
                .filter(|container| container.is_resized && self.resize.is_none())
                .map(|container| container.name.clone())
                .collect(),
            resize: self.resize.clone(),
            container_id: engine.and_then(|engine| engine.id.clone()),
            ended_id: engine.and_then(|engine| engine.ended_id.clone()),
            waiting: engine.and_then(|engine| engine.waiting.clone()),
            others: self
                .containers
                .iter()
                .filter(|container| container.name != manager && !container.runs_once)
                .map(|container| (container.name.clone(), container.beside()))
                .collect(),
            claims: self.claims.clone(),
            data: DataPlace::Unknown,
            unschedulable: self.unschedulable.clone(),
        }
    }

    /// The place of the data of the engine in this container; `directories`: its data directories.
    pub(crate) fn data_place(&self, manager: &str, directories: &[String]) -> DataPlace {
        let engine = self.container(manager);
        engine.map(|engine| data::place(&engine.mounts, directories)).unwrap_or_default()
    }

    /// Names of the volume claims that the pod mounts.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &str> {
        self.claims.iter().map(String::as_str)
    }

    /// The container, or init container, of this name.
    pub(crate) fn container(&self, name: &str) -> Option<&LiveContainer> {
        self.containers.iter().find(|container| container.name == name)
    }
}

impl LiveContainer {
    fn of(
        place: PointerBuf,
        container: &Container,
        status: Option<&ContainerStatus>,
        volumes: &[Volume],
    ) -> Self {
        let json = |resources: Option<&_>| match resources {
            // Kubernetes' own types are always JSON.
            Some(resources) => serde_json::to_value(resources).unwrap_or_default(),
            None => Value::Null,
        };
        let spec = json(container.resources.as_ref());
        let reported = json(status.and_then(|status| status.resources.as_ref()));
        let state = status.and_then(|status| status.state.as_ref());
        let waiting = state.and_then(|state| state.waiting.as_ref());
        let last = status.and_then(|status| status.last_state.as_ref());
        let ended = [state, last].into_iter().flatten().find_map(|state| state.terminated.as_ref());
        let runs = state.is_some_and(|state| state.running.is_some());
        let own = container.env.iter().flatten().filter(|one| one.value_from.is_none());
        let is_init = place.tokens().nth(1).is_some_and(|list| list.encoded() == "initContainers");
        Self {
            name: container.name.clone(),
            place,
            image: container.image.clone().unwrap_or_default(),
            variables: own
                .map(|one| (one.name.clone(), one.value.clone().unwrap_or_default()))
                .collect(),
            is_resized: status.is_some() && stayput_pod_update::in_effect(&spec, &reported),
            resources: match spec {
                Value::Null => "{}".to_owned(),
                resources => resources.to_string(),
            },
            id: status.and_then(|status| status.container_id.clone()).filter(|_| runs),
            ended_id: ended.and_then(|ended| ended.container_id.clone()),
            waiting: waiting.map(|waiting| ContainerWaiting {
                reason: waiting.reason.clone().unwrap_or_default(),
                message: waiting.message.clone().unwrap_or_default(),
            }),
            mounts: data::mounts(container, volumes),
            runs_once: is_init && !pod::is_sidecar(container),
            ready: runs && status.is_some_and(|status| status.ready),
        }
    }

    /// The container as decisions use it beside the manager's.
    fn beside(&self) -> OtherContainer {
        OtherContainer {
            id: self.id.clone(),
            ended_id: self.ended_id.clone(),
            waiting: self.waiting.clone(),
            ready: self.ready,
        }
    }
}

/// The state of a resize that the kubelet has not finished. A condition of an earlier spec is about another
/// size: kubelets of 1.34 and later tell which spec they have seen. An "infeasible" of older ones may be of
/// an earlier size, so it is believed only after a while.
fn resize_state(status: &PodStatus, generation: Option<i64>) -> Option<ResizeState> {
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let is_of_now = |seen: Option<i64>| seen.zip(generation).is_none_or(|(seen, now)| seen >= now);
    let holds = |kind: &str| {
        let mut holding =
            conditions.iter().filter(|each| each.type_ == kind && each.status == "True");
        holding.find(|each| is_of_now(each.observed_generation))
    };
    match (holds("PodResizePending"), holds("PodResizeInProgress")) {
        (Some(pending), _) => {
            let is_infeasible = pending.reason.as_deref() == Some("Infeasible");
            Some(if is_infeasible && pending.observed_generation.is_some() {
                ResizeState::Infeasible(pending.message.clone().unwrap_or_default())
            } else {
                ResizeState::Pending(sentence(pending))
            })
        }
        (None, Some(accepted)) => Some(ResizeState::InProgress(sentence(accepted))),
        (None, None) => None,
    }
}

fn sentence(condition: &PodCondition) -> String {
    let words = [&condition.reason, &condition.message].into_iter().flatten();
    let words: Vec<&str> = words.map(String::as_str).filter(|word| !word.is_empty()).collect();
    words.join(": ")
}

#[cfg(test)]
mod tests;
