//! Finds out if the engine of a declared cluster has formed a cluster.

use std::time::Duration;

use tokio::time::timeout;

use super::{Observer, snapshot};
use stayput_kube_access::cluster::SearchCluster;

/// Time limit of all answers together: requests of people wait meanwhile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

impl Observer {
    /// True if the engine has formed a cluster; false if it does not answer.
    pub(crate) async fn has_formed(&mut self, cluster: &SearchCluster) -> bool {
        let known = snapshot::bare(cluster, &self.pods, String::new());
        let endpoints = self.endpoints_of(cluster, &known);
        if endpoints.is_empty() {
            return false;
        }
        let reach = self.credentials.engine(&cluster.spec.engine).await;
        let asked = self.engine.has_formed(reach, endpoints, &self.metrics);
        match timeout(ANSWER_TIMEOUT, asked).await {
            Ok(Ok(formed)) => formed,
            Ok(Err(error)) => {
                tracing::debug!("the engine cannot be asked whether it has formed: {error}");
                false
            }
            Err(_) => false,
        }
    }
}
