//! The part of a pod that decisions need.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;

use super::live::LiveFacts;
use super::start::StartFacts;
use super::unstarted::Unstarted;
use crate::applied::phase_applied_by;
use stayput_kube_access::cluster::{SearchClusterSpec, Sources, UpdateMode};
use stayput_kube_access::workload::{
    ContainerFacts, DEFAULT_CONTAINER, FindConfig, ProbeTarget, REVISION_LABEL, container_with,
    deadly_probe, engine_container, has_ended, is_stateful_set, mounted_secrets, probe_targets,
    program_of, runs_manager,
};
use stayput_pod_update::ConfigNotFound;
use stayput_restart::{NotStarted, Time, annotation};

/// Parts of pods to read, by the spec of their SearchCluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Label with the name of the engine node, if that is not the pod's name.
    pub(crate) node_name_label: Option<String>,
    /// True to read the parts that an update of the pod needs.
    pub(crate) updates: bool,
    /// How to find the sources of the config in a pod, if the spec does not name them.
    pub(crate) config: Option<FindConfig>,
}

impl Reading {
    pub(crate) fn of(spec: &SearchClusterSpec) -> Self {
        Self {
            node_name_label: spec.pods.node_name_label.clone(),
            updates: spec.update.mode == UpdateMode::InPlace,
            config: FindConfig::of(spec),
        }
    }
}

/// Facts about a pod that decisions need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodFacts {
    pub(crate) uid: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Name of the pod's engine node.
    pub(crate) node: String,
    /// Version of the object; later ones are greater.
    pub(crate) version: u64,
    pub(crate) address: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    /// Our annotations alone.
    pub(crate) annotations: BTreeMap<String, String>,
    /// Name of the tool that applies the phase on the pod as part of a configuration.
    pub(crate) phase_applied_by: Option<String>,
    /// True if the pod has any annotations, ours or not.
    pub(crate) is_annotated: bool,
    pub(crate) ready: bool,
    /// Time since which the pod is ready, if it is and that is known.
    pub(crate) ready_since: Option<Time>,
    pub(crate) terminating: bool,
    pub(crate) crash_looping: bool,
    /// Reason why the pod has not started; `None` once all of its containers have run.
    pub(crate) unstarted: Option<Unstarted>,
    /// The StatefulSet that controls the pod.
    pub(crate) owner: Option<Owner>,
    /// Facts for an update of the pod, if its cluster updates pods.
    pub(crate) live: Option<LiveFacts>,
    /// Input of each container at its start, if the cluster updates pods.
    pub(crate) starts: Vec<StartFacts>,
    /// Sources of the pod's config, if the spec does not name them.
    pub(crate) sources: Option<Result<Sources, ConfigNotFound>>,
    /// The Secrets that the pod mounts, if the spec names the sources of the config and a manager runs in the
    /// pod.
    pub(crate) mounted_secrets: BTreeSet<String>,
    containers: Vec<ContainerFacts>,
    default_container: Option<String>,
    probes: Vec<ProbeTarget>,
}

/// A StatefulSet, and its revision that a pod was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) revision: String,
}

impl PodFacts {
    /// The facts of a pod; `None` if it lacks a field that every pod from the apiserver has.
    pub(crate) fn of(pod: &Pod, reading: &Reading) -> Option<Self> {
        let metadata = &pod.metadata;
        let name = metadata.name.clone()?;
        let labels = metadata.labels.clone().unwrap_or_default();
        let status = pod.status.as_ref();
        let containers = status
            .into_iter()
            .flat_map(|status| [&status.container_statuses, &status.init_container_statuses])
            .flatten()
            .flatten();
        let crash_looping = containers
            .filter_map(|container| container.state.as_ref()?.waiting.as_ref()?.reason.as_deref())
            .any(|reason| reason == "CrashLoopBackOff");
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let ready = conditions
            .into_iter()
            .flatten()
            .find(|condition| condition.type_ == "Ready" && condition.status == "True");
        let ready_since = ready.and_then(|ready| ready.last_transition_time.as_ref());
        let ready_since = ready_since.and_then(|at| u64::try_from(at.0.as_millisecond()).ok());
        let all = metadata.annotations.as_ref();
        let annotations = annotation::ALL
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), all?.get(*key)?.clone())))
            .collect();
        let owner = metadata.owner_references.iter().flatten().find_map(|owner| {
            (is_stateful_set(owner) && owner.controller == Some(true)).then(|| Owner {
                name: owner.name.clone(),
                uid: owner.uid.clone(),
                revision: labels.get(REVISION_LABEL).cloned().unwrap_or_default(),
            })
        });
        let label = reading.node_name_label.as_ref();
        Some(Self {
            uid: metadata.uid.clone()?,
            namespace: metadata.namespace.clone()?,
            node: label.and_then(|label| labels.get(label)).unwrap_or(&name).clone(),
            name,
            version: metadata.resource_version.as_ref()?.parse().ok()?,
            // The address of a pod that has ended may be another pod's by now.
            address: (status.filter(|_| !has_ended(pod))).and_then(|status| status.pod_ip.clone()),
            labels,
            annotations,
            phase_applied_by: phase_applied_by(metadata),
            is_annotated: all.is_some_and(|all| !all.is_empty()),
            ready: ready.is_some(),
            ready_since: ready_since.map(Time),
            terminating: metadata.deletion_timestamp.is_some(),
            crash_looping,
            unstarted: Unstarted::of(pod),
            owner,
            live: reading.updates.then(|| LiveFacts::of(pod)),
            starts: if reading.updates { StartFacts::of(pod) } else { vec![] },
            sources: reading.config.as_ref().map(|find| find.find(pod)),
            mounted_secrets: match reading.config {
                Some(_) => BTreeSet::new(),
                None if runs_manager(pod) => mounted_secrets(pod).map(str::to_owned).collect(),
                None => BTreeSet::new(),
            },
            containers: ContainerFacts::of(pod),
            default_container: all.and_then(|all| all.get(DEFAULT_CONTAINER).cloned()),
            probes: pod.spec.as_ref().map(probe_targets).unwrap_or_default(),
        })
    }

    /// True if a decision may depend on the difference to `other`.
    pub(super) fn differs(&self, other: &Self) -> bool {
        let timeless = |facts: &Self| Self { version: 0, ..facts.clone() };
        timeless(self) != timeless(other)
    }

    /// The container that names this port; if none does, the only one.
    pub(crate) fn container_with(&self, port: u16) -> Option<&str> {
        container_with(&self.containers, port)
    }

    /// The container in which the manager runs, whose templates are compared.
    pub(crate) fn engine_container(&self, manager_port: u16) -> &str {
        engine_container(&self.containers, manager_port, self.default_container.as_deref())
    }

    /// Reason why the container in which the manager runs has never run; `None` if it has.
    pub(crate) fn not_started(&self, manager_port: u16) -> Option<NotStarted> {
        self.unstarted.as_ref()?.of_container(self.engine_container(manager_port))
    }

    /// Path of the program with which the engine's container starts the manager; `None` if its image does
    /// that.
    pub(crate) fn manager_program(&self, manager_port: u16) -> Option<&str> {
        program_of(&self.containers, self.engine_container(manager_port))
    }

    /// Message about a probe that would kill the container while the engine at `port` is stopped.
    pub(crate) fn deadly_probe(&self, port: u16) -> Option<String> {
        deadly_probe(&self.probes, &self.name, port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_stateful_set_of_kubernetes_itself_is_the_owner() {
        let owner = |group: &str, kind: &str, controller: bool| {
            let pod = json!({"metadata": {
                "name": "logs-0", "namespace": "n", "uid": "u", "resourceVersion": "1",
                "ownerReferences": [{
                    "apiVersion": group, "kind": kind, "name": "logs", "uid": "s",
                    "controller": controller,
                }],
            }});
            let pod: Pod = serde_json::from_value(pod).expect("a pod");
            PodFacts::of(&pod, &Reading::default()).expect("its facts").owner.is_some()
        };
        assert!(owner("apps/v1", "StatefulSet", true));
        assert!(!owner("apps/v1", "StatefulSet", false));
        assert!(!owner("apps/v1", "ReplicaSet", true));
        assert!(!owner("apps.kruise.io/v1beta1", "StatefulSet", true));
    }
}
