//! Names that only the apiserver knows.

use std::time::Duration;

use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::kubectl::args::CommonArgs;
use crate::kubectl::cluster_view::ClusterView;
use crate::kubectl::selection;
use crate::kubectl::session::Session;

/// Somebody waits with a finger on the key.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Where names are looked up.
#[derive(Debug)]
pub(super) struct Names {
    common: CommonArgs,
    cluster: Option<String>,
}

impl Names {
    /// `cluster` is the one that the line names.
    pub(super) const fn new(common: CommonArgs, cluster: Option<String>) -> Self {
        Self { common, cluster }
    }

    /// Those of all SearchClusters in the namespace.
    pub(super) fn clusters(&self) -> Vec<String> {
        self.views().into_iter().map(|view| view.name).collect()
    }

    /// Those of the nodes of the cluster that the line names, or of all in the namespace.
    pub(super) fn nodes(&self) -> Vec<String> {
        let is_meant =
            |view: &ClusterView| self.cluster.as_ref().is_none_or(|name| *name == view.name);
        let views = self.views();
        views.iter().filter(|view| is_meant(view)).flat_map(ClusterView::node_names).collect()
    }

    /// None if the apiserver does not answer.
    fn views(&self) -> Vec<ClusterView> {
        let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
            return Vec::new();
        };
        let views = async {
            let session = Session::new(&self.common).await.ok()?;
            selection::views(&session).await.ok()
        };
        let views = runtime.block_on(async { timeout(ANSWER_TIMEOUT, views).await });
        views.ok().flatten().unwrap_or_default()
    }
}
