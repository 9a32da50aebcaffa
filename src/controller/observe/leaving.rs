//! Reads the engine's view of nodes that leave.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::timeout;

use super::{Observer, snapshot};
use stayput_declare::Seen;
use stayput_kube_access::cluster::SearchCluster;

/// Time limit of all answers together.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

impl Observer {
    /// Asks the engine about the leaving nodes. Reads the exclusion before the shards: an excluded node
    /// without shards then gets none.
    pub(crate) async fn see_leaving(
        &mut self,
        cluster: &SearchCluster,
        leaving: &BTreeSet<String>,
    ) -> Result<Seen, String> {
        let known = snapshot::bare(cluster, &self.pods, String::new());
        let endpoints = self.endpoints_of(cluster, &known);
        if endpoints.is_empty() {
            return Err("no pod has an address at which the engine could be asked".to_owned());
        }
        let reach = self.credentials.engine(&cluster.spec.engine).await;
        let uuid = known.ledger.cluster_uuid.as_deref();
        let asked = self.engine.see_leaving(reach, endpoints, leaving, uuid, &self.metrics);
        match timeout(ANSWER_TIMEOUT, asked).await {
            Ok(seen) => seen.map_err(|error| error.to_string()),
            Err(_) => Err("the engine does not answer in time".to_owned()),
        }
    }
}
