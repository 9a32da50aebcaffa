//! Names that only the apiserver knows.

use std::time::Duration;

use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::args::CommonArgs;
use crate::selection;
use crate::session::Session;
use crate::view::ClusterView;

/// Timeout of the apiserver's answer: a person waits with a finger on the key.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Looks up names at the apiserver.
#[derive(Debug)]
pub(crate) struct NameLookup {
    common: CommonArgs,
    cluster: Option<String>,
}

impl NameLookup {
    /// `cluster` is the cluster on the command line.
    pub(crate) const fn new(common: CommonArgs, cluster: Option<String>) -> Self {
        Self { common, cluster }
    }

    /// Names of all SearchClusters in the namespace.
    pub(crate) fn clusters(&self) -> Vec<String> {
        self.views().into_iter().map(|view| view.name).collect()
    }

    /// Names of the nodes of the cluster on the command line, or of all clusters in the namespace.
    pub(crate) fn nodes(&self) -> Vec<String> {
        let is_meant =
            |view: &ClusterView| self.cluster.as_ref().is_none_or(|name| *name == view.name);
        let views = self.views();
        views.iter().filter(|view| is_meant(view)).flat_map(ClusterView::node_names).collect()
    }

    /// All clusters in the namespace; empty if the apiserver does not answer.
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
