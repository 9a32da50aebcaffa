//! The result of a command, for people and for programs.

use schemars::JsonSchema;
use serde::Serialize;
use stayput_restart::Strategy;

use crate::json::ForecastOutput;
use crate::view::ClusterView;

/// Result of a command, for people and for programs.
#[derive(Debug)]
pub(crate) struct ActionReport {
    pub(crate) page: String,
    pub(crate) output: ActionOutput,
}

/// The output without the fields that only some commands add.
pub(crate) fn output(view: &ClusterView, result: ActionResult) -> ActionOutput {
    ActionOutput {
        cluster: view.name.clone(),
        namespace: view.namespace.clone(),
        result,
        id: None,
        strategy: None,
        nodes: Vec::new(),
        steps: Vec::new(),
        forecast: None,
        no_forecast: None,
        reconciler: view.reconciler.warning(),
    }
}

/// `restart`, `cancel`, `pause`, `resume`, `stop`, `start` and `detach`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ActionOutput {
    pub(crate) cluster: String,
    pub(crate) namespace: String,
    pub(crate) result: ActionResult,
    /// Id of the restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) strategy: Option<Strategy>,
    /// Names of the nodes concerned. For a restart: in its order, as far as that is known without the
    /// engine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) nodes: Vec<String>,
    /// Of `detach`: what is done, or would be, in its order; for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) steps: Vec<String>,
    /// Of `restart --dry-run`: what the request would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) forecast: Option<Box<ForecastOutput>>,
    /// Of `restart --dry-run`: why the reconciler gave no snapshot to work that out from; for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) no_forecast: Option<String>,
    /// Why no reconciler works, and what to read about that; for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reconciler: Option<String>,
}

/// Result of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ActionResult {
    /// The restart is requested.
    Requested,
    /// Nothing: a restart with this id was requested before.
    AlreadyRequested,
    /// The cancellation of the restart is requested.
    CancelRequested,
    /// The request was removed before the reconciler accepted it.
    Withdrawn,
    /// The nodes are marked to be kept stopped.
    StopRequested,
    /// The nodes are no longer marked to be kept stopped.
    StartRequested,
    /// The cluster is paused: no further node is stopped.
    Paused,
    /// The cluster is paused no longer.
    Resumed,
    /// Nothing: it was so already.
    Unchanged,
    /// The SearchCluster is gone, and nothing of ours is left on its pods.
    Detached,
    /// Nothing: a dry run.
    DryRun,
    /// Nothing: a dry run of a request that the reconciler would refuse.
    WouldBeRefused,
}
