//! What commands look at: one SearchCluster and its pods at one moment, as plain data.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod as KubePod;

use crate::cluster::{SearchCluster, SearchClusterStatus};
use stayput_restart::{
    self as restart, Code, HistoryEntry, LastRestart, NodeReport, OnConfigChange, Request, Restart,
    Saved, Sources, Unknown, annotation,
};

/// One SearchCluster and its pods.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    pub(super) namespace: String,
    pub(super) name: String,
    /// For patches: nothing else may have changed.
    pub(super) version: String,
    pub(super) is_annotated: bool,
    pub(super) paused: bool,
    pub(super) deleting: bool,
    pub(super) on_config_change: OnConfigChange,
    /// Nodes that the spec keeps stopped.
    pub(super) stopped: BTreeSet<String>,
    /// Our annotations on it.
    pub(super) annotations: BTreeMap<String, String>,
    /// What the reconciler has written; none before its first look.
    pub(super) status: Option<SearchClusterStatus>,
    /// By name.
    pub(super) pods: Vec<Pod>,
}

/// One pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pod {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) version: String,
    pub(super) is_annotated: bool,
    /// Name of its engine node.
    pub(super) node: String,
    pub(super) ready: bool,
    pub(super) crash_looping: bool,
    /// Its phase in a restart, as it stands there.
    pub(super) phase: Option<String>,
    /// An annotation keeps its node stopped.
    pub(super) stopped: bool,
    pub(super) last_restart: Option<LastRestart>,
}

impl View {
    pub(super) fn of<'a>(
        cluster: &SearchCluster,
        pods: impl IntoIterator<Item = &'a KubePod>,
    ) -> Self {
        let metadata = &cluster.metadata;
        let label = cluster.spec.pods.node_name_label.as_deref();
        let mut pods: Vec<Pod> = pods.into_iter().map(|pod| Pod::of(pod, label)).collect();
        pods.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            is_annotated: metadata.annotations.is_some(),
            paused: cluster.spec.paused,
            deleting: metadata.deletion_timestamp.is_some(),
            on_config_change: cluster.spec.restart.on_config_change.into(),
            stopped: cluster.spec.stopped.iter().cloned().collect(),
            annotations: metadata.annotations.clone().unwrap_or_default(),
            status: cluster.status.clone(),
            pods,
        }
    }

    /// As it was when a snapshot was taken, with the words the reconciler had for it.
    pub(super) fn replayed(saved: &Saved) -> Self {
        let Saved { snapshot, policy, .. } = saved;
        let cluster = &snapshot.cluster;
        let (namespace, name) = cluster.name.split_once('/').unwrap_or(("", &cluster.name));
        let made = restart::plan(snapshot, policy);
        let report = restart::report(snapshot, policy, &made);
        let ledger = snapshot.ledger.clone();
        let status = SearchClusterStatus { observed_generation: None, report, ledger };
        let mut pods: Vec<Pod> = snapshot.pods.iter().map(Pod::replayed).collect();
        pods.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            version: String::new(),
            is_annotated: !cluster.annotations.is_empty(),
            paused: cluster.paused,
            deleting: cluster.deleting,
            on_config_change: policy.on_config_change,
            stopped: cluster.stopped.clone(),
            annotations: cluster.annotations.clone(),
            status: Some(status),
            pods,
        }
    }

    /// The pod of a node.
    pub(super) fn node(&self, node: &str) -> Option<&Pod> {
        self.pods.iter().find(|pod| pod.node == node)
    }

    pub(super) fn node_names(&self) -> impl Iterator<Item = String> {
        self.pods.iter().map(|pod| pod.node.clone())
    }

    /// Whether the node is to be kept stopped, by annotation or spec.
    pub(super) fn is_kept_stopped(&self, pod: &Pod) -> bool {
        pod.stopped || self.stopped.contains(&pod.node)
    }

    /// The restart under way.
    pub(super) fn restart(&self) -> Option<&Restart> {
        self.status.as_ref()?.ledger.restart.as_ref()
    }

    /// The request that waits for the restart under way to end.
    pub(super) fn queued(&self) -> Option<&Request> {
        self.status.as_ref()?.ledger.queued.as_ref()
    }

    /// The request on the SearchCluster, if the reconciler has not taken it up yet; the error if it
    /// cannot be read.
    pub(super) fn requested(&self) -> Option<Result<Request, String>> {
        let request = Request::parse(self.annotations.get(annotation::REQUEST)?)
            .map_err(|error| error.to_string());
        match request {
            Ok(request) if self.has_handled(&request.id) => None,
            other => Some(other),
        }
    }

    pub(super) fn has_handled(&self, id: &str) -> bool {
        self.status.as_ref().is_some_and(|status| status.ledger.has_handled(id))
    }

    /// What is over, latest last.
    pub(super) fn history(&self) -> &[HistoryEntry] {
        self.status.as_ref().map_or(&[], |status| &status.ledger.history)
    }

    /// Whether this is what keeps the restart under way from going on.
    pub(super) fn is_blocked_by(&self, code: Code) -> bool {
        let status = self.status.as_ref();
        status.and_then(|status| status.report.blocked.as_deref()) == Some(code.as_str())
    }

    /// What the status says about a node.
    pub(super) fn report(&self, node: &str) -> Option<&NodeReport> {
        self.status.as_ref()?.report.nodes.iter().find(|report| report.name == node)
    }

    /// The pods that are not kept stopped in the order in which a restart would take them, as far as
    /// it can be told without asking the engine.
    pub(super) fn in_order(&self) -> Vec<&Pod> {
        let pods = self.pods.iter().filter(|pod| !self.is_kept_stopped(pod));
        let plain: Vec<restart::Pod> = pods.map(Pod::plain).collect();
        let order = restart::order(&plain, None);
        order.iter().filter_map(|plain| self.pods.iter().find(|pod| pod.uid == plain.uid)).collect()
    }
}

impl Pod {
    fn of(pod: &KubePod, label: Option<&str>) -> Self {
        let metadata = &pod.metadata;
        let name = metadata.name.clone().unwrap_or_default();
        let labels = metadata.labels.as_ref();
        let node = label.and_then(|label| labels?.get(label)).unwrap_or(&name).clone();
        let annotations = metadata.annotations.as_ref();
        let annotation = |key| annotations.and_then(|all| all.get(key));
        let last = annotation(annotation::LAST_RESTART);
        let status = pod.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let ready = |one: &&_| is_ready(one);
        let containers = status.and_then(|status| status.container_statuses.as_ref());
        let waits = containers.into_iter().flatten().filter_map(|one| one.state.as_ref());
        let mut reasons = waits.filter_map(|state| state.waiting.as_ref()?.reason.as_deref());
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            is_annotated: annotations.is_some(),
            ready: conditions.into_iter().flatten().any(|one| ready(&one)),
            crash_looping: reasons.any(|reason| reason == "CrashLoopBackOff"),
            phase: annotation(annotation::PHASE).cloned(),
            stopped: annotation(annotation::STOPPED).is_some_and(|value| value == "true"),
            last_restart: last.and_then(|text| serde_json::from_str(text).ok()),
            name,
            node,
        }
    }

    fn replayed(pod: &restart::Pod) -> Self {
        let annotation = |key| pod.annotations.get(key);
        let last = annotation(annotation::LAST_RESTART);
        Self {
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            version: String::new(),
            is_annotated: !pod.annotations.is_empty(),
            node: pod.node.clone(),
            ready: pod.ready,
            crash_looping: pod.crash_looping,
            phase: annotation(annotation::PHASE).cloned(),
            stopped: annotation(annotation::STOPPED).is_some_and(|value| value == "true"),
            last_restart: last.and_then(|text| serde_json::from_str(text).ok()),
        }
    }

    /// What the order of a restart depends on; the rest is not known here.
    fn plain(&self) -> restart::Pod {
        restart::Pod {
            uid: self.uid.clone(),
            name: self.name.clone(),
            node: self.node.clone(),
            annotations: BTreeMap::new(),
            ready: self.ready,
            terminating: false,
            crash_looping: self.crash_looping,
            outdated: None,
            deadly_probe: None,
            sources: Sources::Undeclared,
            manager: Err(Unknown { message: "not asked here".into() }),
        }
    }
}

fn is_ready(condition: &k8s_openapi::api::core::v1::PodCondition) -> bool {
    condition.type_ == "Ready" && condition.status == "True"
}
