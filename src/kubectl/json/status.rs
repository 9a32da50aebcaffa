//! The JSON of `status` and `history`.

use schemars::JsonSchema;
use serde::Serialize;

use super::node::NodeOutput;
use super::restart::RestartOutput;
use crate::cluster_view::ClusterView;
use crate::config_from::config_from;
use stayput_restart::{Condition, Counts, HistoryEntry, Request};

/// `status`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusOutput {
    cluster: String,
    namespace: String,
    /// True if the reconciler has written a status. If not, all that comes from it is empty here.
    has_status: bool,
    /// Why no reconciler works, and what to read about that; for people. Not set if one works, or if the
    /// user may not read its Lease.
    reconciler: Option<String>,
    phase: String,
    /// Code of the rule or fault that blocks the cluster as a whole.
    blocked: Option<String>,
    /// The reason for waiting, and the remedy, for people.
    message: Option<String>,
    /// How much longer the restart takes, for people.
    estimate: Option<String>,
    paused: bool,
    counts: Counts,
    /// The Secrets and ConfigMaps that the config is made from, and the absent ones, for people.
    config_from: Option<String>,
    /// Nodes that are in a phase, down, blocked, stopped or on another config than their sources have.
    nodes: Vec<NodeOutput>,
    /// The restart under way.
    restart: Option<RestartOutput>,
    /// The request that waits for the restart under way to end.
    queued: Option<Request>,
    /// The request that the reconciler has not accepted yet.
    requested: Option<Request>,
    conditions: Vec<Condition>,
    /// The restart that ended last.
    last_restart: Option<HistoryEntry>,
}

/// `history`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HistoryOutput {
    cluster: String,
    namespace: String,
    /// As in `status`.
    reconciler: Option<String>,
    /// The restarts that have ended, the latest last.
    history: Vec<HistoryEntry>,
}

/// `status -A` and `history -A`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AllOutput<T> {
    /// Of all namespaces, by namespace and name.
    clusters: Vec<T>,
}

impl<T> AllOutput<T> {
    pub(crate) fn new(views: &[ClusterView], of: fn(&ClusterView) -> T) -> Self {
        Self { clusters: views.iter().map(of).collect() }
    }
}

impl StatusOutput {
    pub(crate) fn new(view: &ClusterView) -> Self {
        let status = view.status.clone().unwrap_or_default();
        let listed = status.report.nodes.iter().map(|report| report.name.clone());
        let mut names: Vec<String> = listed.collect();
        for pod in &view.pods {
            let is_worth_listing = pod.phase.is_some() || view.is_kept_stopped(pod);
            if is_worth_listing && !names.contains(&pod.node) {
                names.push(pod.node.clone());
            }
        }
        Self {
            cluster: view.name.clone(),
            namespace: view.namespace.clone(),
            has_status: view.status.is_some(),
            reconciler: view.reconciler.warning(),
            phase: status.report.phase,
            blocked: status.report.blocked,
            message: status.report.message,
            estimate: status.report.estimate,
            paused: view.paused,
            counts: status.report.counts,
            config_from: config_from(view),
            nodes: names.iter().map(|name| NodeOutput::new(view, name)).collect(),
            restart: view.restart().map(RestartOutput::new),
            queued: view.queued().cloned(),
            requested: view.requested().and_then(Result::ok),
            conditions: status.report.conditions,
            last_restart: status.ledger.history.last().cloned(),
        }
    }
}

impl HistoryOutput {
    pub(crate) fn new(view: &ClusterView) -> Self {
        Self {
            cluster: view.name.clone(),
            namespace: view.namespace.clone(),
            reconciler: view.reconciler.warning(),
            history: view.history().to_vec(),
        }
    }
}
