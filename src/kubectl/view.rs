//! One SearchCluster and its pods at a point in time, as plain data: what every page and every JSON is made from.

pub(crate) mod live;
pub(crate) mod node;
pub(crate) mod pod;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use stayput_kube_access::cluster::{SearchCluster, SearchClusterStatus};
use stayput_restart as restart;
use stayput_restart::{
    Code, Condition, HistoryEntry, MAX_NODES, Member, MemberStep, NodeReport, OnConfigChange,
    Outcome, Report, Request, Restart, Saved, annotation,
};

use crate::leader::Reconciler;
use crate::view::node::NodeView;
use crate::view::pod::{ConfigFrom, PodView};

/// One SearchCluster and its pods.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClusterView {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The version for patches: the apiserver refuses one if the object has changed since.
    pub(crate) resource_version: String,
    pub(crate) has_annotations: bool,
    pub(crate) finalizers: Vec<String>,
    pub(crate) paused: bool,
    /// Errors in the spec: with any of them, no node is stopped.
    pub(crate) faults: Vec<String>,
    pub(crate) deleting: bool,
    pub(crate) on_config_change: OnConfigChange,
    /// Nodes that `spec.stopped` keeps stopped.
    pub(crate) kept_stopped_by_spec: BTreeSet<String>,
    pub(crate) annotations: BTreeMap<String, String>,
    /// Where the config's sources come from: the spec, or the pods. Absent in a view of a snapshot.
    pub(crate) sources_from: Option<&'static str>,
    /// Status, once the reconciler has written one.
    pub(crate) status: Option<SearchClusterStatus>,
    /// Pods, sorted by name.
    pub(crate) pods: Vec<PodView>,
    /// State of the reconciler, which has to work to change the status.
    pub(crate) reconciler: Reconciler,
    /// Options of kubectl for the same apiserver, quoted for a shell, with a space in front.
    pub(crate) options: String,
}

/// A restart request in an annotation that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct InvalidRequest {
    /// The parser's message, with an example.
    message: String,
}

/// Tone of a value: its color on a terminal, its color and sign on a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Neutral,
    Good,
    /// A state that takes long, or that a person should check.
    Warning,
    Bad,
}

pub(crate) fn tone_of_phase(phase: &str) -> Tone {
    match phase {
        "Idle" => Tone::Good,
        "Blocked" | "Degraded" | "Invalid" | "Aborting" => Tone::Bad,
        _ => Tone::Warning,
    }
}

pub(crate) const fn tone_of_outcome(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Done => Tone::Good,
        Outcome::Superseded => Tone::Warning,
        Outcome::Aborted | Outcome::RolledBack | Outcome::Interfered => Tone::Bad,
    }
}

/// Tone of a condition: for some it is good to be True, for some it is not.
pub(crate) fn tone_of_condition(condition: &Condition) -> Tone {
    let is_true = match condition.status.as_str() {
        "True" => true,
        "False" => false,
        _ => return Tone::Warning,
    };
    match condition.kind.as_str() {
        "Ready" | "Available" | "CertificatesValid" if is_true => Tone::Good,
        "Available" | "CertificatesValid" => Tone::Bad,
        "Ready" => Tone::Warning,
        "Stalled" | "Blocked" | "Degraded" if is_true => Tone::Bad,
        "PredicatesDisabled" if is_true => Tone::Warning,
        _ => Tone::Neutral,
    }
}

/// Number of members of a restart that are finished.
pub(crate) fn finished(restart: &Restart) -> usize {
    restart.members.iter().filter(|member| member.step == MemberStep::Finished).count()
}

impl ClusterView {
    pub(crate) fn from_objects<'a>(
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
            ..Self::default()
        }
    }

    /// The cluster at the time of a snapshot, with the status that the reconciler made from it.
    pub(crate) fn from_snapshot(saved: &Saved) -> Self {
        let Saved { snapshot, policy, .. } = saved;
        let cluster = &snapshot.cluster;
        let (namespace, name) = cluster.name.split_once('/').unwrap_or(("", &cluster.name));
        let plan = restart::plan(snapshot, policy);
        let report = restart::report(snapshot, policy, &plan);
        let ledger = snapshot.ledger.clone();
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            has_annotations: !cluster.annotations.is_empty(),
            paused: cluster.paused,
            deleting: cluster.deleting,
            on_config_change: policy.on_config_change,
            kept_stopped_by_spec: cluster.stopped.clone(),
            annotations: cluster.annotations.clone(),
            status: Some(SearchClusterStatus { observed_generation: None, report, ledger }),
            pods: sorted_by_name(snapshot.pods.iter().map(PodView::from_snapshot)),
            ..Self::default()
        }
    }

    pub(crate) fn pod_of_node(&self, node: &str) -> Option<&PodView> {
        self.pods.iter().find(|pod| pod.node == node)
    }

    /// Number of pods that are ready now; the status has the number at its last write.
    pub(crate) fn ready(&self) -> usize {
        self.pods.iter().filter(|pod| pod.ready).count()
    }

    pub(crate) fn node_names(&self) -> impl Iterator<Item = String> {
        self.pods.iter().map(|pod| pod.node.clone())
    }

    /// True if an annotation or the spec keeps the node stopped.
    pub(crate) fn is_kept_stopped(&self, pod: &PodView) -> bool {
        pod.kept_stopped_by_annotation || self.kept_stopped_by_spec.contains(&pod.node)
    }

    /// The restart under way.
    pub(crate) fn restart(&self) -> Option<&Restart> {
        self.status.as_ref()?.ledger.restart.as_ref()
    }

    /// The request that waits for the restart under way to end.
    pub(crate) fn queued(&self) -> Option<&Request> {
        self.status.as_ref()?.ledger.queued.as_ref()
    }

    /// The request on the SearchCluster that the reconciler has not accepted yet.
    pub(crate) fn requested(&self) -> Option<Result<Request, InvalidRequest>> {
        match Request::parse(self.annotations.get(annotation::REQUEST)?) {
            Ok(request) if self.has_handled(&request.id) => None,
            Ok(request) => Some(Ok(request)),
            Err(error) => Some(Err(InvalidRequest { message: error.to_string() })),
        }
    }

    pub(crate) fn has_handled(&self, id: &str) -> bool {
        self.status.as_ref().is_some_and(|status| status.ledger.has_handled(id))
    }

    /// The restarts that have ended, the latest last.
    pub(crate) fn history(&self) -> &[HistoryEntry] {
        self.status.as_ref().map_or(&[], |status| &status.ledger.history)
    }

    /// A command about this cluster.
    pub(crate) fn command(&self, verb: &str) -> String {
        format!("{} {verb} {}", self.stayput(), self.name)
    }

    /// The command that cancels the restart with this id, or withdraws its request.
    pub(crate) fn cancel_command(&self, id: &str) -> String {
        format!("{} --id {id}", self.command("cancel"))
    }

    /// A command of kubectl itself in the cluster's namespace.
    pub(crate) fn kubectl(&self, command: &str) -> String {
        format!("kubectl{} -n {} {command}", self.options, self.namespace)
    }

    /// A command about these nodes of the cluster.
    pub(crate) fn command_for(&self, verb: &str, nodes: &[String]) -> String {
        let nodes = nodes.join(" ");
        format!("{} {verb} {nodes} --cluster {}", self.stayput(), self.name)
    }

    fn stayput(&self) -> String {
        format!("kubectl stayput{} -n {}", self.options, self.namespace)
    }

    /// The reconciler's report in the status.
    pub(crate) fn report(&self) -> Option<&Report> {
        self.status.as_ref().map(|status| &status.report)
    }

    pub(crate) fn conditions(&self) -> &[Condition] {
        self.report().map_or(&[], |report| &report.conditions)
    }

    /// Code and message of what blocks the cluster as a whole.
    pub(crate) fn blocker(&self) -> Option<String> {
        let code = self.blocked_by()?;
        let message = self.report().and_then(|report| report.message.as_deref());
        Some(message.map_or_else(|| code.to_owned(), |message| format!("{code}: {message}")))
    }

    pub(crate) fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions().iter().find(|condition| condition.kind == kind)
    }

    /// Code of the rule or fault that blocks the cluster as a whole.
    pub(crate) fn blocked_by(&self) -> Option<&str> {
        self.report()?.blocked.as_deref()
    }

    /// True if this code blocks the restart under way.
    pub(crate) fn is_blocked_by(&self, code: Code) -> bool {
        self.blocked_by() == Some(code.as_str())
    }

    /// The status of a node.
    pub(crate) fn node_report(&self, node: &str) -> Option<&NodeReport> {
        self.report()?.nodes.iter().find(|report| report.name == node)
    }

    /// One node, by its name.
    pub(crate) fn node<'a>(&'a self, name: &'a str) -> NodeView<'a> {
        let (pod, report) = (self.pod_of_node(name), self.node_report(name));
        NodeView { cluster: self, name, pod, report }
    }

    /// The nodes that the status lists.
    pub(crate) fn listed_nodes(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.report().into_iter().flat_map(|report| &report.nodes).map(|node| self.node(&node.name))
    }

    /// The nodes that the status lists, and those with a phase, or kept stopped, that it does not list yet.
    pub(crate) fn noted_nodes(&self) -> Vec<NodeView<'_>> {
        let others = self.pods.iter().map(|pod| self.node(&pod.node)).filter(|node| {
            node.report.is_none() && (node.phase().is_some() || node.is_kept_stopped())
        });
        self.listed_nodes().chain(others).collect()
    }

    /// Text for a node that is missing in the status because the list is full.
    pub(crate) fn left_out(&self, node: &str) -> Option<String> {
        let is_cut = self.is_cut() && self.node_report(node).is_none();
        is_cut.then(|| {
            let plan = self.command("plan");
            format!("not known: the status names only the first {MAX_NODES} nodes: `{plan}`")
        })
    }

    /// True if the status has reached its limit of nodes, and may leave out others.
    pub(crate) fn is_cut(&self) -> bool {
        self.report().is_some_and(|report| report.nodes.len() >= MAX_NODES)
    }

    /// The members of the restart under way that wait for their turn, in its order as far as that is known
    /// without the engine.
    pub(crate) fn scheduled(&self) -> Vec<&Member> {
        let order = self.restart_order();
        let place = |member: &&Member| {
            order.iter().position(|pod| pod.uid == member.pod_uid).unwrap_or(usize::MAX)
        };
        let members = self.restart().into_iter().flat_map(|restart| &restart.members);
        let waiting = members.filter(|member| member.step == MemberStep::Scheduled);
        let mut waiting: Vec<&Member> = waiting.collect();
        waiting.sort_by_key(place);
        waiting
    }

    /// The pods that a restart would take, in its order as far as that is known without the engine.
    pub(crate) fn restart_order(&self) -> Vec<&PodView> {
        let pods = self.pods.iter().filter(|pod| !self.is_kept_stopped(pod));
        let mut pods: Vec<&PodView> = pods.collect();
        pods.sort_by(|one, other| one.place().cmp(&other.place()));
        pods
    }
}

fn sorted_by_name(pods: impl Iterator<Item = PodView>) -> Vec<PodView> {
    let mut pods: Vec<PodView> = pods.collect();
    pods.sort_by(|one, other| one.name.cmp(&other.name));
    pods
}

/// Maximum number of objects in the line about the config.
const SHOWN: usize = 5;

/// The sources of the engines' config in one line, and their problems, if the cluster has pods.
pub(crate) fn config_from(view: &ClusterView) -> Option<String> {
    // Many pods have an object each, named after the pod.
    let of_all = |name: &String, pod: &str| name.replace(pod, "{pod}");
    let objects: BTreeSet<String> = view
        .pods
        .iter()
        .flat_map(|pod| pod.config_from.iter().map(|name| of_all(name, &pod.name)))
        .collect();
    let mut parts = Vec::new();
    if !objects.is_empty() {
        let how = view.sources_from.map(|from| format!(" ({from})")).unwrap_or_default();
        let more = match objects.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let shown: Vec<String> = objects.into_iter().take(SHOWN).collect();
        parts.push(format!("{}{more}{how}", shown.join(", ")));
    }
    let unknown = view.pods.iter().find_map(|pod| pod.config_unknown.as_ref());
    parts.extend(unknown.map(|reason| format!("not known: {reason}")));
    parts.extend(view.report().and_then(|report| report.source_absent.clone()));
    (!parts.is_empty()).then(|| parts.join("; "))
}
