//! One SearchCluster and its pods at a point in time, as plain data.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;

use super::leader::Reconciler;
use super::pod_view::{ConfigFrom, PodView};
use stayput_kube_access::cluster::{SearchCluster, SearchClusterStatus};
use stayput_restart::{
    self as restart, Code, HistoryEntry, MAX_NODES, NodeReport, OnConfigChange, Request, Restart,
    Saved, annotation,
};

/// One SearchCluster and its pods.
#[derive(Debug, Clone, Default)]
pub(super) struct ClusterView {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The version for patches: the apiserver refuses one if the object has changed since.
    pub(super) resource_version: String,
    pub(super) has_annotations: bool,
    pub(super) finalizers: Vec<String>,
    pub(super) paused: bool,
    /// Errors in the spec: with any of them, no node is stopped.
    pub(super) faults: Vec<String>,
    pub(super) deleting: bool,
    pub(super) on_config_change: OnConfigChange,
    /// Nodes that `spec.stopped` keeps stopped.
    pub(super) kept_stopped_by_spec: BTreeSet<String>,
    pub(super) annotations: BTreeMap<String, String>,
    /// Where the config's sources come from: the spec, or the pods. Absent in a view of a snapshot.
    pub(super) sources_from: Option<&'static str>,
    /// Status, once the reconciler has written one.
    pub(super) status: Option<SearchClusterStatus>,
    /// Pods, sorted by name.
    pub(super) pods: Vec<PodView>,
    /// State of the reconciler, which has to work to change the status.
    pub(super) reconciler: Reconciler,
    /// Options of kubectl for the same apiserver, quoted for a shell, with a space in front.
    pub(super) options: String,
}

/// A restart request in an annotation that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(super) struct InvalidRequest {
    /// The parser's message, with an example.
    message: String,
}

impl ClusterView {
    pub(super) fn from_objects<'a>(
        cluster: &SearchCluster,
        pods: impl IntoIterator<Item = &'a Pod>,
    ) -> Self {
        let metadata = &cluster.metadata;
        let label = cluster.spec.pods.node_name_label.as_deref();
        let config_from = ConfigFrom::of(cluster);
        let port = cluster.spec.manager.port;
        let pods = pods
            .into_iter()
            .map(|pod| PodView::from_object(pod, label, port, config_from.as_ref()));
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            has_annotations: metadata.annotations.is_some(),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            paused: cluster.spec.paused,
            faults: cluster.check().err().iter().flatten().map(ToString::to_string).collect(),
            deleting: metadata.deletion_timestamp.is_some(),
            on_config_change: cluster.spec.restart.on_config_change,
            kept_stopped_by_spec: cluster.spec.stopped.iter().cloned().collect(),
            annotations: metadata.annotations.clone().unwrap_or_default(),
            sources_from: Some(if cluster.is_declared() {
                "spec.nodeSets"
            } else if cluster.spec.config.sources.is_empty() {
                "found in the pods"
            } else {
                "spec.config.sources"
            }),
            status: cluster.status.clone(),
            pods: sorted_by_name(pods),
            reconciler: Reconciler::default(),
            options: String::new(),
        }
    }

    /// The cluster at the time of a snapshot, with the status that the reconciler made from it.
    pub(super) fn from_snapshot(saved: &Saved) -> Self {
        let Saved { snapshot, policy, .. } = saved;
        let cluster = &snapshot.cluster;
        let (namespace, name) = cluster.name.split_once('/').unwrap_or(("", &cluster.name));
        let plan = restart::plan(snapshot, policy);
        let report = restart::report(snapshot, policy, &plan);
        let ledger = snapshot.ledger.clone();
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            resource_version: String::new(),
            has_annotations: !cluster.annotations.is_empty(),
            finalizers: Vec::new(),
            paused: cluster.paused,
            faults: Vec::new(),
            deleting: cluster.deleting,
            on_config_change: policy.on_config_change,
            kept_stopped_by_spec: cluster.stopped.clone(),
            annotations: cluster.annotations.clone(),
            sources_from: None,
            status: Some(SearchClusterStatus { observed_generation: None, report, ledger }),
            pods: sorted_by_name(snapshot.pods.iter().map(PodView::from_snapshot)),
            reconciler: Reconciler::default(),
            options: String::new(),
        }
    }

    pub(super) fn pod_of_node(&self, node: &str) -> Option<&PodView> {
        self.pods.iter().find(|pod| pod.node == node)
    }

    /// Number of pods that are ready now; the status has the number at its last write.
    pub(super) fn ready(&self) -> usize {
        self.pods.iter().filter(|pod| pod.ready).count()
    }

    pub(super) fn node_names(&self) -> impl Iterator<Item = String> {
        self.pods.iter().map(|pod| pod.node.clone())
    }

    /// True if an annotation or the spec keeps the node stopped.
    pub(super) fn is_kept_stopped(&self, pod: &PodView) -> bool {
        pod.kept_stopped_by_annotation || self.kept_stopped_by_spec.contains(&pod.node)
    }

    /// The restart under way.
    pub(super) fn restart(&self) -> Option<&Restart> {
        self.status.as_ref()?.ledger.restart.as_ref()
    }

    /// The request that waits for the restart under way to end.
    pub(super) fn queued(&self) -> Option<&Request> {
        self.status.as_ref()?.ledger.queued.as_ref()
    }

    /// The request on the SearchCluster that the reconciler has not accepted yet.
    pub(super) fn requested(&self) -> Option<Result<Request, InvalidRequest>> {
        match Request::parse(self.annotations.get(annotation::REQUEST)?) {
            Ok(request) if self.has_handled(&request.id) => None,
            Ok(request) => Some(Ok(request)),
            Err(error) => Some(Err(InvalidRequest { message: error.to_string() })),
        }
    }

    pub(super) fn has_handled(&self, id: &str) -> bool {
        self.status.as_ref().is_some_and(|status| status.ledger.has_handled(id))
    }

    /// The restarts that have ended, the latest last.
    pub(super) fn history(&self) -> &[HistoryEntry] {
        self.status.as_ref().map_or(&[], |status| &status.ledger.history)
    }

    /// A command about this cluster.
    pub(super) fn command(&self, verb: &str) -> String {
        format!("{} {verb} {}", self.stayput(), self.name)
    }

    /// The command that cancels the restart with this id, or withdraws its request.
    pub(super) fn cancel_command(&self, id: &str) -> String {
        format!("{} --id {id}", self.command("cancel"))
    }

    /// A command of kubectl itself in the cluster's namespace.
    pub(super) fn kubectl(&self, command: &str) -> String {
        format!("kubectl{} -n {} {command}", self.options, self.namespace)
    }

    /// A command about these nodes of the cluster.
    pub(super) fn command_for(&self, verb: &str, nodes: &[String]) -> String {
        let nodes = nodes.join(" ");
        format!("{} {verb} {nodes} --cluster {}", self.stayput(), self.name)
    }

    fn stayput(&self) -> String {
        format!("kubectl stayput{} -n {}", self.options, self.namespace)
    }

    /// True if this code blocks the restart under way.
    pub(super) fn is_blocked_by(&self, code: Code) -> bool {
        let status = self.status.as_ref();
        status.and_then(|status| status.report.blocked.as_deref()) == Some(code.as_str())
    }

    /// The status of a node.
    pub(super) fn node_report(&self, node: &str) -> Option<&NodeReport> {
        self.status.as_ref()?.report.nodes.iter().find(|report| report.name == node)
    }

    /// Text for a node that is missing in the status because the list is full.
    pub(super) fn left_out(&self, node: &str) -> Option<String> {
        let is_cut = self.is_cut() && self.node_report(node).is_none();
        is_cut.then(|| {
            let plan = self.command("plan");
            format!("not known: the status names only the first {MAX_NODES} nodes: `{plan}`")
        })
    }

    /// True if the status has reached its limit of nodes, and may leave out others.
    pub(super) fn is_cut(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.report.nodes.len() >= MAX_NODES)
    }

    /// The pods that a restart would take, in its order as far as that is known without the engine.
    pub(super) fn restart_order(&self) -> Vec<&PodView> {
        let pods = self.pods.iter().filter(|pod| !self.is_kept_stopped(pod));
        let pods: Vec<restart::Pod> = pods.map(PodView::for_ordering).collect();
        let order = restart::order(&pods, None);
        order.iter().filter_map(|next| self.pods.iter().find(|pod| pod.uid == next.uid)).collect()
    }
}

fn sorted_by_name(pods: impl Iterator<Item = PodView>) -> Vec<PodView> {
    let mut pods: Vec<PodView> = pods.collect();
    pods.sort_by(|one, other| one.name.cmp(&other.name));
    pods
}
