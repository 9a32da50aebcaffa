//! Observes the engine: what it reports about its cluster.

mod convert;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::ages::Ages;
use crate::controller::credentials::CredentialsError;
use crate::controller::metrics::{Metrics, Side};
use crate::controller::pods::Facts;
use crate::engine_client::{self, Access, Endpoint, EngineClient, EngineError};
pub(in super::super) use convert::health;
use convert::known;
use stayput_restart::{Engine, Node};

/// How long one endpoint may take for one answer.
const ENGINE_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// So many nodes are tried before the engine counts as unreachable.
const MAX_ENDPOINTS: usize = 8;

/// One engine, and what of it stays the same from one observation to the next.
#[derive(Debug, Default)]
pub(in super::super) struct EngineView {
    client: Option<(String, Vec<Endpoint>, Arc<EngineClient>)>,
    identity: Option<engine_client::Engine>,
    /// Roles and version of each process, by ephemeral id: one that hangs does not report them, and
    /// they do not change while it runs.
    traits: BTreeMap<String, Traits>,
}

type Traits = (BTreeSet<String>, String);

/// Why the engine's view is not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum ViewError {
    /// There are no credentials: nothing was sent.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the engine has not formed a cluster yet")]
    NoCluster,
    #[error(
        "the engine has not read its indices and settings from disk yet: it waits for more nodes \
         (gateway.expected_data_nodes, gateway.recover_after_data_nodes)"
    )]
    NotRecovered,
    #[error("the engine lists {0}, which has not reported its roles yet")]
    RolesUnknown(String),
}

impl ViewError {
    /// Whether the engine did not accept our credentials, or its certificate is not trusted.
    pub(super) fn is_about_credentials(&self) -> bool {
        matches!(
            self,
            Self::Engine(
                EngineError::Unauthorized(_) | EngineError::Untrusted(_) | EngineError::Unusable(_)
            )
        )
    }
}

/// The nodes to ask, best first: ready ones before others, those under way last.
pub(super) fn endpoints(pods: &[Arc<Facts>], ages: &Ages<'_>, port: u16) -> Vec<Endpoint> {
    let mut pods: Vec<(&Arc<Facts>, &String)> =
        pods.iter().filter_map(|pod| Some((pod, pod.address.as_ref()?))).collect();
    pods.sort_by_key(|(pod, _)| (ages.is_under_way(&pod.uid), !pod.ready, pod.terminating));
    let endpoint = |(_, host): (_, &String)| Endpoint { host: host.clone(), port };
    pods.into_iter().take(MAX_ENDPOINTS).map(endpoint).collect()
}

impl EngineView {
    /// The client that was used last, and the engine it reached.
    pub(in super::super) fn client(&self) -> Option<(Arc<EngineClient>, &engine_client::Engine)> {
        let (_, _, client) = self.client.as_ref()?;
        Some((Arc::clone(client), self.identity.as_ref()?))
    }

    /// Reads everything at the same time.
    pub(super) async fn observe(
        &mut self,
        access: Result<(Access, String), CredentialsError>,
        endpoints: Vec<Endpoint>,
        zone: &str,
        metrics: &Metrics,
    ) -> Result<Engine, ViewError> {
        let (access, version) = access?;
        let client = self.connect(&access, version, endpoints)?;
        let identity = match &self.identity {
            Some(identity) => identity.clone(),
            None => {
                let identity = client.identify().await;
                metrics.count_request(Side::Engine, "identify", identity.is_ok());
                self.identity.insert(identity?).clone()
            }
        };
        let records = async {
            match identity.has_node_shutdown {
                true => client.shutdown_records().await.map(Some),
                false => Ok(None),
            }
        };
        let (topology, health, allocation, records) =
            tokio::join!(client.topology(&identity), client.health(), client.allocation(), records);
        metrics.count_request(Side::Engine, "topology", topology.is_ok());
        metrics.count_request(Side::Engine, "health", health.is_ok());
        metrics.count_request(Side::Engine, "allocation", allocation.is_ok());
        metrics.count_request(Side::Engine, "records", records.is_ok());
        let topology = match topology {
            Ok(topology) => topology,
            Err(error) => {
                // Another engine may run there now.
                self.identity = None;
                return Err(error.into());
            }
        };
        if !topology.recovered {
            // An empty list of indices, settings or records would be taken for one without any.
            return Err(ViewError::NotRecovered);
        }
        let Some(cluster_uuid) = topology.cluster_uuid.clone() else {
            return Err(ViewError::NoCluster);
        };
        if identity.cluster_uuid.as_ref() != Some(&cluster_uuid) {
            self.identity = None;
        }
        // Asked only where it matters: few clusters have an index without replicas.
        let searchable_snapshots = match engine_client::unreplicated(&topology.shards).is_empty() {
            true => Ok(BTreeSet::new()),
            false => {
                let found = client.searchable_snapshots().await;
                metrics.count_request(Side::Engine, "searchable_snapshots", found.is_ok());
                known(found)
            }
        };
        Ok(Engine {
            version: format!("{} {}", identity.distribution, identity.version).to_lowercase(),
            cluster_uuid,
            nodes: self.nodes(&topology, zone)?,
            elected_master: topology.elected_master.clone(),
            health: known(health).map(|health| convert::health(&health)),
            voting: Ok(convert::voting(topology.voting)),
            shards: Ok(topology.shards.iter().map(convert::shard).collect()),
            searchable_snapshots,
            allocation: known(allocation).map(convert::allocation),
            records: known(records).map(|records| {
                records.map(|records| records.into_iter().map(convert::record).collect())
            }),
        })
    }

    fn connect(
        &mut self,
        access: &Access,
        version: String,
        endpoints: Vec<Endpoint>,
    ) -> Result<Arc<EngineClient>, EngineError> {
        if let Some((known, to, client)) = &self.client
            && *known == version
            && *to == endpoints
        {
            return Ok(Arc::clone(client));
        }
        let client = Arc::new(EngineClient::new(&endpoints, access, ENGINE_ANSWER_TIMEOUT)?);
        if self.client.as_ref().is_some_and(|(known, ..)| *known != version) {
            self.identity = None;
        }
        self.client = Some((version, endpoints, Arc::clone(&client)));
        Ok(client)
    }

    fn nodes(
        &mut self,
        topology: &engine_client::Topology,
        zone: &str,
    ) -> Result<Vec<Node>, ViewError> {
        let mut traits = BTreeMap::new();
        let mut nodes = Vec::with_capacity(topology.nodes.len());
        for node in &topology.nodes {
            let (roles, version) = match (&node.roles, &node.version) {
                (Some(roles), version) => {
                    let version = version.as_ref().map(ToString::to_string).unwrap_or_default();
                    (roles.clone(), version)
                }
                (None, _) => match self.traits.get(&node.ephemeral_id) {
                    Some(traits) => traits.clone(),
                    None => return Err(ViewError::RolesUnknown(node.name.clone())),
                },
            };
            nodes.push(Node {
                id: node.id.clone(),
                name: node.name.clone(),
                ephemeral_id: node.ephemeral_id.clone(),
                roles: roles.clone(),
                zone: node.attributes.get(zone).cloned(),
                version: version.clone(),
            });
            traits.insert(node.ephemeral_id.clone(), (roles, version));
        }
        self.traits = traits;
        Ok(nodes)
    }
}

#[cfg(test)]
mod quorum_recorded;
#[cfg(test)]
mod tests;
