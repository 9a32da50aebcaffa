//! One pod of a SearchCluster, as plain data.

use k8s_openapi::api::core::v1::Pod;
use stayput_kube_access::cluster::{self, SearchCluster};
use stayput_kube_access::pod::{self, Containers, FindConfig, unwatched};
use stayput_restart as restart;
use stayput_restart::{LastRestart, Sources, annotation, exec_manager, place_without_engine};

/// One pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PodView {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) has_annotations: bool,
    /// Name of the pod's engine node.
    pub(crate) node: String,
    /// Arguments of `kubectl exec` that run the manager's program.
    pub(crate) exec_manager: String,
    pub(crate) ready: bool,
    pub(crate) crash_looping: bool,
    /// Value of the phase annotation, which a person may have written.
    pub(crate) phase: Option<String>,
    /// True if an annotation on the pod keeps its node stopped.
    pub(crate) kept_stopped_by_annotation: bool,
    pub(crate) last_restart: Option<LastRestart>,
    /// The revision that it was made from, while its label names the one that it is to get.
    pub(crate) actual_revision: Option<String>,
    /// Secrets and ConfigMaps with the node's config; empty if they are not known.
    pub(crate) config_from: Vec<String>,
    /// Why the config's sources are not known.
    pub(crate) config_unknown: Option<String>,
    /// Objects that the engine's container mounts and nobody watches, with the paths.
    pub(crate) unwatched: Vec<String>,
}

/// Place where the config's Secrets and ConfigMaps are named: the spec, or each pod.
pub(crate) enum ConfigFrom {
    Spec(cluster::Sources),
    Pod(FindConfig),
}

impl ConfigFrom {
    /// The place for this cluster. `None` for an invalid spec that names sources.
    pub(crate) fn of(cluster: &SearchCluster) -> Option<Self> {
        match FindConfig::of(&cluster.completed_spec()) {
            Some(find) => Some(Self::Pod(find)),
            None => cluster.check().ok().map(|checked| Self::Spec(checked.sources)),
        }
    }

    fn objects(&self, pod: &Pod) -> Result<Vec<String>, String> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let found;
        let sources = match self {
            Self::Spec(named) => named,
            Self::Pod(find) => {
                found = find.find(pod).map_err(|reason| format!("the pod {name} {reason}"))?;
                &found
            }
        };
        Ok(sources.objects(name).iter().map(ToString::to_string).collect())
    }
}

impl PodView {
    pub(crate) fn from_object(
        pod: &Pod,
        node_name_label: Option<&str>,
        manager_port: u16,
        config_from: Option<&ConfigFrom>,
    ) -> Self {
        let metadata = &pod.metadata;
        let objects = match config_from {
            Some(from) => from.objects(pod),
            None => Err("the spec is invalid".into()),
        };
        let is_config = |name: &String| objects.iter().flatten().any(|object| object == name);
        let others = unwatched(pod, manager_port).into_iter();
        let others = others.filter(|one| !is_config(&one.source.to_string()));
        let others = others.map(|one| format!("{} at {}", one.source, one.path)).collect();
        let name = metadata.name.clone().unwrap_or_default();
        let annotations = metadata.annotations.as_ref();
        let annotation = |key| annotations.and_then(|all| all.get(key));
        let containers = Containers::of(pod);
        let (container, program) =
            (containers.with_port(manager_port), containers.program(manager_port));
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            has_annotations: annotations.is_some(),
            node: pod::engine_node(pod, node_name_label),
            exec_manager: exec_manager(&name, container, program),
            ready: pod::ready(pod).is_some(),
            crash_looping: pod::is_crash_looping(pod),
            phase: annotation(annotation::PHASE).cloned(),
            kept_stopped_by_annotation: is_true(annotation(annotation::STOPPED)),
            last_restart: annotation(annotation::LAST_RESTART).and_then(|text| last_restart(text)),
            actual_revision: annotation(annotation::ACTUAL_REVISION).cloned(),
            config_unknown: objects.as_ref().err().cloned(),
            unwatched: others,
            config_from: objects.unwrap_or_default(),
            name,
        }
    }

    pub(crate) fn from_snapshot(pod: &restart::Pod) -> Self {
        let annotation = |key| pod.annotations.get(key);
        Self {
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            has_annotations: !pod.annotations.is_empty(),
            node: pod.node.clone(),
            exec_manager: exec_manager(&pod.name, pod.container.as_deref(), pod.program.as_deref()),
            ready: pod.ready,
            crash_looping: pod.crash_looping,
            phase: annotation(annotation::PHASE).cloned(),
            kept_stopped_by_annotation: is_true(annotation(annotation::STOPPED)),
            last_restart: annotation(annotation::LAST_RESTART).and_then(|text| last_restart(text)),
            actual_revision: annotation(annotation::ACTUAL_REVISION).cloned(),
            config_from: pod.config_from.clone(),
            config_unknown: match &pod.sources {
                Sources::Unknown(message) => Some(message.clone()),
                Sources::Checksum(_) | Sources::Absent(_) => None,
            },
            ..Self::default()
        }
    }

    /// Place in the order of a restart.
    pub(crate) fn place(&self) -> impl Ord {
        place_without_engine(&self.name, !self.ready || self.crash_looping)
    }
}

fn is_true(value: Option<&String>) -> bool {
    value.is_some_and(|value| value == "true")
}

fn last_restart(text: &str) -> Option<LastRestart> {
    serde_json::from_str(text).ok()
}
