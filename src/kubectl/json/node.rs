//! The JSON of one node.

use schemars::JsonSchema;
use serde::Serialize;

use crate::cluster_view::ClusterView;
use stayput_restart::{LastRestart, UpdateStep};

/// `why`, and each node of `status` and `plan`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeOutput {
    name: String,
    pod: Option<String>,
    pod_uid: Option<String>,
    ready: Option<bool>,
    /// Phase of its restart, as its pod shows it.
    phase: Option<String>,
    /// An annotation or the spec keeps it stopped.
    kept_stopped: bool,
    /// State of its engine.
    state: Option<String>,
    /// Checksum of the config it runs on; its first twelve digits.
    checksum: Option<String>,
    /// The Secrets and ConfigMaps that its config is made from; empty if they are not known.
    config_from: Vec<String>,
    /// How its restart, or the one that it needs, is carried out: `relabel`, `restart`, `container`,
    /// `resize` or `replace`.
    step: Option<&'static str>,
    /// The fields of its pod template that need this step, with their values; the first few.
    because: Vec<String>,
    /// Code of why it is down, as `nodes[].down` in the status.
    down: Option<String>,
    /// Code of what blocks it.
    blocked_by: Option<String>,
    /// Code of what it waits for, if that blocks nothing.
    waits_for: Option<String>,
    /// Why it is down, what to do, and what it waits for, for people; or that the status has no room for
    /// this node.
    message: Option<String>,
    last_restart: Option<LastRestart>,
    /// In `why`: why no reconciler works, and what to read about that; for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    reconciler: Option<String>,
}

impl NodeOutput {
    pub(crate) fn new(view: &ClusterView, node: &str) -> Self {
        let pod = view.pod_of_node(node);
        let report = view.node_report(node).cloned().unwrap_or_default();
        Self {
            name: node.to_owned(),
            pod: pod.map(|pod| pod.name.clone()),
            pod_uid: pod.map(|pod| pod.uid.clone()),
            ready: pod.map(|pod| pod.ready),
            phase: pod.map_or(report.phase, |pod| pod.phase.clone()),
            kept_stopped: pod.is_some_and(|pod| view.is_kept_stopped(pod)),
            state: report.state,
            checksum: report.checksum,
            config_from: pod.map(|pod| pod.config_from.clone()).unwrap_or_default(),
            step: report.step.map(UpdateStep::name),
            because: report.because,
            down: report.down,
            blocked_by: report.blocked_by,
            waits_for: report.waits_for,
            message: report.message.or_else(|| view.left_out(node)),
            last_restart: pod.and_then(|pod| pod.last_restart.clone()),
            reconciler: None,
        }
    }

    /// The output of `why` for one node.
    pub(crate) fn why(view: &ClusterView, node: &str) -> Self {
        Self { reconciler: view.reconciler.warning(), ..Self::new(view, node) }
    }
}
