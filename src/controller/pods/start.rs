//! The start of a pod: what its containers have read then, and why it has not started yet.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use serde_json::json;
use stayput_kube_access::pod::{container_statuses, is_sidecar, unschedulable};
use stayput_pod_update::{Arrival, Other, Started, Use, is_made_anew, uses};
use stayput_restart::NotStarted;

/// The Secrets and ConfigMaps that a container read when it was started (as variables, or as files mounted by
/// `subPath`), or that its pod read: by its init containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartFacts {
    pub(crate) container: String,
    /// The present run, while the container runs.
    pub(crate) started: Option<Started>,
    pub(crate) uses: BTreeSet<Use>,
    /// True if the kubelet makes the container anew when its process has ended.
    pub(crate) is_made_anew: bool,
}

impl StartFacts {
    /// The facts of each container of the pod, if any of them has read any.
    pub(super) fn of(pod: &Pod) -> Vec<Self> {
        let Some(spec) = &pod.spec else { return vec![] };
        let init = spec.init_containers.iter().flatten();
        if !spec.containers.iter().any(may_read) && !init.into_iter().any(may_read_for_the_pod) {
            return vec![];
        }
        // The pod stands in for its template: its containers also read the parts that admission adds.
        let template = json!({"spec": spec});
        let beside = spec.init_containers.iter().flatten().filter(|one| is_sidecar(one));
        let facts = spec.containers.iter().chain(beside).map(|container| Self {
            container: container.name.clone(),
            started: started(pod, &container.name),
            uses: uses(&template, &container.name)
                .into_iter()
                .filter(|used| used.arrival != Arrival::Mounted)
                .collect(),
            is_made_anew: is_made_anew(&template, &container.name),
        });
        let facts: Vec<Self> = facts.collect();
        if facts.iter().all(|facts| facts.uses.is_empty()) { vec![] } else { facts }
    }
}

/// True if the container may read Secrets or ConfigMaps only at its start; most do not.
fn may_read(container: &Container) -> bool {
    let variable = container.env.iter().flatten().any(|variable| variable.value_from.is_some());
    let by_part = container
        .volume_mounts
        .iter()
        .flatten()
        .any(|mount| mount.sub_path.is_some() || mount.sub_path_expr.is_some());
    variable || by_part || container.env_from.as_ref().is_some_and(|from| !from.is_empty())
}

/// True if the init container may read Secrets or ConfigMaps for the pod: it reads mounted files only once,
/// too.
fn may_read_for_the_pod(container: &Container) -> bool {
    may_read(container) || container.volume_mounts.as_ref().is_some_and(|mounts| !mounts.is_empty())
}

fn started(pod: &Pod, container: &str) -> Option<Started> {
    let status = container_statuses(pod).find(|status| status.name == container)?;
    let at = status.state.as_ref()?.running.as_ref()?.started_at.as_ref()?;
    Some(Started {
        at: at.0.as_second(),
        restarts: status.restart_count,
        pod: pod.metadata.creation_timestamp.as_ref().map_or(i64::MIN, |at| at.0.as_second()),
        init: init_started(pod),
    })
}

/// Earliest last start of the init containers that have run; `None` if one of them has no start time, because
/// the kubelet has forgotten its container.
fn init_started(pod: &Pod) -> Option<i64> {
    let containers = pod.spec.as_ref()?.init_containers.iter().flatten();
    let run_once = containers.filter(|one| !is_sidecar(one));
    let started = |container: &Container| {
        let status = container_statuses(pod).find(|status| status.name == container.name)?;
        let ended = status.state.as_ref()?.terminated.as_ref()?;
        Some(ended.started_at.as_ref()?.0.as_second())
    };
    run_once.map(started).min_by_key(|at| at.unwrap_or(i64::MIN)).flatten()
}

/// The containers beside the engine's, each with its own input.
pub(crate) fn others<'a>(
    starts: &'a [StartFacts],
    engine: &'a str,
) -> impl Iterator<Item = Other> + use<'a> {
    starts.iter().filter(move |start| start.container != engine).filter_map(|start| {
        let own = start.uses.iter().filter(|used| used.arrival == Arrival::NewContainer);
        let uses: BTreeSet<Use> = own.cloned().collect();
        let started = start.started.filter(|_| !uses.is_empty())?;
        Some(Other { name: start.container.clone(), started, uses })
    })
}

/// A pod of which Kubernetes has not started all containers yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unstarted {
    /// Containers that have never run, without init containers.
    never_ran: BTreeSet<String>,
    why: NotStarted,
}

impl Unstarted {
    /// The state of a pod that has not started; `None` once every container has run.
    pub(super) fn of(pod: &Pod) -> Option<Self> {
        // A pod is `Pending` until all of its containers have run.
        if pod.status.as_ref()?.phase.as_deref() != Some("Pending") {
            return None;
        }
        let ran = container_statuses(pod).filter(|one| has_run(one));
        let ran: BTreeSet<&str> = ran.map(|one| one.name.as_str()).collect();
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let names = containers.map(|container| &container.name);
        let never_ran = names.filter(|name| !ran.contains(name.as_str())).cloned().collect();
        Some(Self { never_ran, why: why(pod) })
    }

    /// Reason why this container has never run; `None` if it has.
    pub(crate) fn of_container(&self, name: &str) -> Option<NotStarted> {
        self.never_ran.contains(name).then(|| self.why.clone())
    }
}

fn has_run(container: &ContainerStatus) -> bool {
    let states = [&container.state, &container.last_state].into_iter().flatten();
    container.restart_count > 0
        || states.into_iter().any(|state| state.running.is_some() || state.terminated.is_some())
}

fn why(pod: &Pod) -> NotStarted {
    if let Some(refused) = unschedulable(pod) {
        return NotStarted {
            container: None,
            reason: refused.reason.clone().unwrap_or_default(),
            message: refused.message.clone().unwrap_or_default(),
        };
    }
    container_statuses(pod).find_map(hindrance).unwrap_or_else(|| NotStarted {
        container: None,
        reason: NotStarted::CREATING.to_owned(),
        message: String::new(),
    })
}

/// Reason why a container waits; `None` if it runs, has done its work, or waits for the init containers.
fn hindrance(container: &ContainerStatus) -> Option<NotStarted> {
    let state = container.state.as_ref()?;
    let (reason, message) = if let Some(waiting) = &state.waiting {
        (waiting.reason.clone(), waiting.message.clone())
    } else {
        let ended = state.terminated.as_ref().filter(|ended| ended.exit_code != 0)?;
        (ended.reason.clone(), Some(format!("ended with code {}", ended.exit_code)))
    };
    let reason = reason.filter(|reason| reason != "PodInitializing")?;
    let message = message.unwrap_or_default();
    Some(NotStarted { container: Some(container.name.clone()), reason, message })
}

#[cfg(test)]
mod tests;
