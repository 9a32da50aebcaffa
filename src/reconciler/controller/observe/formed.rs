//! Whether the engine of a declared cluster has formed a cluster.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::ages::Ages;
use super::engine::endpoints;
use super::{Observer, snapshot};
use crate::cluster::SearchCluster;
use crate::controller::pods::Facts;

/// How long all answers together may take: what people ask for waits meanwhile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

impl Observer {
    /// Asks the engine. False if it does not answer.
    pub(in crate::controller) async fn has_formed(&mut self, cluster: &SearchCluster) -> bool {
        let pods: Vec<Arc<Facts>> = self.pods.iter().cloned().collect();
        let known = snapshot::bare(cluster, &self.pods, String::new());
        let must_read = BTreeSet::new();
        let ages = Ages::of(&known, &must_read, false, pods.len());
        let endpoints = endpoints(&pods, &ages, cluster.spec.engine.port);
        if endpoints.is_empty() {
            return false;
        }
        let access = self.credentials.engine(&cluster.spec.engine).await;
        let asked = self.engine.has_formed(access, endpoints, &self.metrics);
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
