//! The pods of one SearchCluster, from the watch and from the answers to our own patches. Keeps only the
//! facts that decisions need, because there may be ten thousand pods.

mod live;
mod start;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::runtime::watcher::Event;
use serde_json::Value;
use stayput_kube_access::cluster::{SearchClusterSpec, Sources, UpdateMode};
use stayput_kube_access::pod::{
    self, Containers, FindConfig, Owner, ProbeTarget, deadly_probe, probe_targets,
};
use stayput_pod_update::ConfigNotFound;
use stayput_restart::{NotStarted, Time, annotation};

pub(super) use crate::pods::live::{LiveFacts, is_data_elsewhere};
pub(super) use crate::pods::start::others;
use crate::pods::start::{StartFacts, Unstarted};

/// The known pods.
#[derive(Debug, Default)]
pub(super) struct Pods {
    /// The pods by name.
    known: BTreeMap<String, Arc<PodFacts>>,
    /// The part of a new list that has arrived.
    listing: Option<BTreeMap<String, Arc<PodFacts>>>,
    complete: bool,
}

impl Pods {
    /// True if a whole list has arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// All pods, in the order of their names.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<PodFacts>> {
        self.known.values()
    }

    /// The pod with this uid.
    pub(super) fn by_uid(&self, uid: &str) -> Option<&Arc<PodFacts>> {
        self.known.values().find(|facts| facts.uid == uid)
    }

    /// Applies an event of the watch. True if a decision may depend on the difference.
    pub(super) fn apply(&mut self, event: Event<Pod>, reading: &Reading) -> bool {
        match event {
            Event::Apply(pod) => PodFacts::of(&pod, reading).is_some_and(|facts| self.put(facts)),
            Event::Delete(pod) => {
                let gone = self.known.get(pod.metadata.name.as_deref().unwrap_or_default());
                let same = gone.is_some_and(|facts| Some(&facts.uid) == pod.metadata.uid.as_ref());
                if same {
                    self.known.remove(pod.metadata.name.as_deref().unwrap_or_default());
                }
                same
            }
            Event::Init => {
                self.listing = Some(BTreeMap::new());
                false
            }
            Event::InitApply(pod) => {
                if let (Some(listing), Some(facts)) =
                    (&mut self.listing, PodFacts::of(&pod, reading))
                {
                    listing.insert(facts.name.clone(), Arc::new(facts));
                }
                false
            }
            Event::InitDone => self.replace_by_list(),
        }
    }

    /// Stores the facts of one pod, unless newer ones are known: the watch lags behind the answers to our own
    /// patches. True if a decision may depend on the difference.
    pub(super) fn put(&mut self, facts: PodFacts) -> bool {
        match self.known.get(&facts.name) {
            Some(known) if known.uid == facts.uid && known.version >= facts.version => false,
            Some(known) => {
                let matters = known.differs(&facts);
                self.known.insert(facts.name.clone(), Arc::new(facts));
                matters
            }
            None => {
                self.known.insert(facts.name.clone(), Arc::new(facts));
                true
            }
        }
    }

    /// Replaces all pods by the new list, except those that are newer than it.
    fn replace_by_list(&mut self) -> bool {
        let Some(mut listing) = self.listing.take() else { return false };
        for (name, known) in &self.known {
            if let Some(listed) = listing.get_mut(name)
                && listed.uid == known.uid
                && listed.version < known.version
            {
                *listed = known.clone();
            }
        }
        let matters = !self.complete
            || self.known.len() != listing.len()
            || listing
                .iter()
                .any(|(name, new)| self.known.get(name).is_none_or(|known| known.differs(new)));
        self.known = listing;
        self.complete = true;
        matters
    }
}

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
    /// Facts for an update of the pod, if its cluster updates pods, or if its label is ahead.
    pub(crate) live: Option<LiveFacts>,
    /// Input of each container at its start, if the cluster updates pods.
    pub(crate) starts: Vec<StartFacts>,
    /// Sources of the pod's config, if the spec does not name them.
    pub(crate) sources: Option<Result<Sources, ConfigNotFound>>,
    /// The Secrets that the pod mounts, if the spec names the sources of the config and a manager runs in the
    /// pod.
    pub(crate) mounted_secrets: BTreeSet<String>,
    containers: Containers,
    probes: Vec<ProbeTarget>,
}

impl PodFacts {
    /// The facts of a pod; `None` if it lacks a field that every pod from the apiserver has.
    pub(crate) fn of(pod: &Pod, reading: &Reading) -> Option<Self> {
        let metadata = &pod.metadata;
        let name = metadata.name.clone()?;
        let status = pod.status.as_ref();
        let ready = pod::ready(pod);
        let ready_since = ready.and_then(|ready| ready.last_transition_time.as_ref());
        let ready_since = ready_since.and_then(|at| u64::try_from(at.0.as_millisecond()).ok());
        let all = metadata.annotations.as_ref();
        let annotations = annotation::ALL
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), all?.get(*key)?.clone())))
            .collect();
        let owner = Owner::of(pod);
        let is_updated = reading.updates || owner.as_ref().is_some_and(Owner::is_label_ahead);
        Some(Self {
            uid: metadata.uid.clone()?,
            namespace: metadata.namespace.clone()?,
            node: pod::engine_node(pod, reading.node_name_label.as_deref()),
            name,
            version: metadata.resource_version.as_ref()?.parse().ok()?,
            // The address of a pod that has ended may be another pod's by now.
            address: (status.filter(|_| !pod::has_ended(pod)))
                .and_then(|status| status.pod_ip.clone()),
            labels: metadata.labels.clone().unwrap_or_default(),
            annotations,
            phase_applied_by: phase_applied_by(metadata),
            is_annotated: all.is_some_and(|all| !all.is_empty()),
            ready: ready.is_some(),
            ready_since: ready_since.map(Time),
            terminating: metadata.deletion_timestamp.is_some(),
            crash_looping: pod::is_crash_looping(pod),
            unstarted: Unstarted::of(pod),
            owner,
            live: is_updated.then(|| LiveFacts::of(pod)),
            starts: if reading.updates { StartFacts::of(pod) } else { vec![] },
            sources: reading.config.as_ref().map(|find| find.find(pod)),
            mounted_secrets: match reading.config {
                Some(_) => BTreeSet::new(),
                None if pod::runs_manager(pod) => {
                    pod::mounted_secrets(pod).map(str::to_owned).collect()
                }
                None => BTreeSet::new(),
            },
            containers: Containers::of(pod),
            probes: pod.spec.as_ref().map(probe_targets).unwrap_or_default(),
        })
    }

    /// True if a decision may depend on the difference to `other`.
    fn differs(&self, other: &Self) -> bool {
        let timeless = |facts: &Self| Self { version: 0, ..facts.clone() };
        timeless(self) != timeless(other)
    }

    /// The container that names this port; if none does, the only one.
    pub(crate) fn container_with(&self, port: u16) -> Option<&str> {
        self.containers.with_port(port)
    }

    /// The container in which the manager runs, whose templates are compared.
    pub(crate) fn engine_container(&self, manager_port: u16) -> &str {
        self.containers.engine(manager_port)
    }

    /// Reason why the container in which the manager runs has never run; `None` if it has.
    pub(crate) fn not_started(&self, manager_port: u16) -> Option<NotStarted> {
        self.unstarted.as_ref()?.of_container(self.engine_container(manager_port))
    }

    /// Path of the program with which the engine's container starts the manager; `None` if its image does
    /// that.
    pub(crate) fn manager_program(&self, manager_port: u16) -> Option<&str> {
        self.containers.program(manager_port)
    }

    /// Message about a probe that would kill the container while the engine at `port` is stopped.
    pub(crate) fn deadly_probe(&self, port: u16) -> Option<String> {
        deadly_probe(&self.probes, &self.name, port)
    }
}

/// Annotation of client-side apply: the configuration as it was applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Name of the tool that applies the phase as part of a configuration. `None` without a phase, or if a client
/// only wrote it.
pub(super) fn phase_applied_by(metadata: &ObjectMeta) -> Option<String> {
    let annotations = metadata.annotations.as_ref()?;
    let phase = annotations.get(annotation::PHASE)?;
    let owner = |entry: &&ManagedFieldsEntry| owns_phase(entry);
    let mut owners = metadata.managed_fields.iter().flatten().filter(owner);
    let name = |entry: &ManagedFieldsEntry| entry.manager.clone();
    let is_applied = |entry: &ManagedFieldsEntry| entry.operation.as_deref() == Some("Apply");
    // Server-side apply: Flux, and Argo CD if it is told so.
    if let Some(owner) = owners.clone().find(|entry| is_applied(entry)) {
        return Some(name(owner).unwrap_or_else(|| "a server-side apply".into()));
    }
    // Client-side apply: kubectl apply, and Argo CD by default.
    let applied: Value = serde_json::from_str(annotations.get(LAST_APPLIED)?).ok()?;
    let applied = applied.get("metadata")?.get("annotations")?.get(annotation::PHASE)?;
    let by = owners.next().and_then(name).unwrap_or_else(|| "kubectl apply".into());
    (applied.as_str() == Some(phase)).then_some(by)
}

/// True if this manager owns the field with the phase.
pub(super) fn owns_phase(entry: &ManagedFieldsEntry) -> bool {
    let Some(fields) = &entry.fields_v1 else { return false };
    let annotations = fields.0.get("f:metadata").and_then(|metadata| metadata.get("f:annotations"));
    annotations.is_some_and(|all| all.get(format!("f:{}", annotation::PHASE)).is_some())
}

#[cfg(test)]
mod tests;
