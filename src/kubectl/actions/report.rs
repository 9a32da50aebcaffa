//! The result of a command, for people and for programs.

use crate::cluster_view::ClusterView;
use crate::json::{ActionOutput, ActionResult};

/// Result of a command, for people and for programs.
#[derive(Debug)]
pub(crate) struct ActionReport {
    pub(crate) page: String,
    pub(crate) output: ActionOutput,
}

/// The output without the fields that only some commands add.
pub(super) fn output(view: &ClusterView, result: ActionResult) -> ActionOutput {
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
