//! What the engine says about its cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::Ages;
use crate::controller::metrics::{Metrics, Side};
use crate::controller::pods::Facts;
use crate::engine_client::{
    self, Access, Endpoint, EngineClient, EngineError, RecordKind, RecordStatus, ShardState,
};
use stayput_restart::{
    Allocation, AllocationBefore, Color, Engine, Health, Known, Node, Record, ShardCopy, Unknown,
    Voting,
};

/// How long one endpoint may take for one answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many nodes are tried before the engine counts as unreachable.
const ENDPOINTS: usize = 8;

/// One engine, and what of it stays the same from look to look.
#[derive(Debug, Default)]
pub(in super::super) struct EngineView {
    client: Option<(String, Vec<Endpoint>, Arc<EngineClient>)>,
    identity: Option<engine_client::Engine>,
    /// What a process said of itself, by ephemeral id: one that hangs is what it was.
    traits: BTreeMap<String, (BTreeSet<String>, String)>,
}

/// Why nothing is seen.
pub(super) struct Blind {
    pub(super) message: String,
    /// It did not accept who we say we are, or we not who it is.
    pub(super) is_shunned: bool,
}

impl From<EngineError> for Blind {
    fn from(error: EngineError) -> Self {
        let is_shunned = matches!(
            error,
            EngineError::Unauthorized(_) | EngineError::Untrusted(_) | EngineError::Unusable(_)
        );
        Self { message: error.to_string(), is_shunned }
    }
}

/// The nodes to ask, best first: ready ones before others, those under way last.
pub(super) fn endpoints(pods: &[Arc<Facts>], ages: &Ages<'_>, port: u16) -> Vec<Endpoint> {
    let mut pods: Vec<(&Arc<Facts>, &String)> =
        pods.iter().filter_map(|pod| Some((pod, pod.address.as_ref()?))).collect();
    pods.sort_by_key(|(pod, _)| (ages.is_close(&pod.uid), !pod.ready, pod.terminating));
    let endpoint = |(_, host): (_, &String)| Endpoint { host: host.clone(), port };
    pods.into_iter().take(ENDPOINTS).map(endpoint).collect()
}

impl EngineView {
    /// The client that was used last, and what it talks to.
    pub(in super::super) fn client(&self) -> Option<(Arc<EngineClient>, &engine_client::Engine)> {
        let (_, _, client) = self.client.as_ref()?;
        Some((Arc::clone(client), self.identity.as_ref()?))
    }

    /// Asks for everything at once.
    pub(super) async fn look(
        &mut self,
        access: Result<(Access, String), String>,
        endpoints: Vec<Endpoint>,
        zone: &str,
        metrics: &Metrics,
    ) -> Result<Engine, Blind> {
        let (access, version) = access.map_err(|message| Blind { message, is_shunned: false })?;
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
                // It may be another engine by now.
                self.identity = None;
                return Err(error.into());
            }
        };
        let Some(cluster_uuid) = topology.cluster_uuid.clone() else {
            let message = "the engine has not formed a cluster yet".to_owned();
            return Err(Blind { message, is_shunned: false });
        };
        if identity.cluster_uuid.as_ref() != Some(&cluster_uuid) {
            self.identity = None;
        }
        Ok(Engine {
            version: format!("{} {}", identity.distribution, identity.version).to_lowercase(),
            cluster_uuid,
            nodes: self.nodes(&topology, zone)?,
            master: topology.elected_master.clone(),
            health: known(health).map(|health| self::health(&health)),
            voting: Ok(voting(topology.voting)),
            shards: Ok(topology.shards.iter().map(copy).collect()),
            allocation: known(allocation).map(self::allocation),
            records: known(records)
                .map(|records| records.map(|records| records.into_iter().map(record).collect())),
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
        let client = Arc::new(EngineClient::new(&endpoints, access, PATIENCE)?);
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
    ) -> Result<Vec<Node>, Blind> {
        let mut traits = BTreeMap::new();
        let mut nodes = Vec::with_capacity(topology.nodes.len());
        for node in &topology.nodes {
            let said = match (&node.roles, &node.version) {
                (Some(roles), version) => {
                    let version = version.as_ref().map(ToString::to_string).unwrap_or_default();
                    (roles.clone(), version)
                }
                (None, _) => match self.traits.get(&node.ephemeral_id) {
                    Some(said) => said.clone(),
                    None => {
                        let message = format!(
                            "the engine lists {}, which has not told its roles yet",
                            node.name
                        );
                        return Err(Blind { message, is_shunned: false });
                    }
                },
            };
            nodes.push(Node {
                id: node.id.clone(),
                name: node.name.clone(),
                ephemeral_id: node.ephemeral_id.clone(),
                roles: said.0.clone(),
                zone: node.attributes.get(zone).cloned(),
                version: said.1.clone(),
            });
            traits.insert(node.ephemeral_id.clone(), said);
        }
        self.traits = traits;
        Ok(nodes)
    }
}

fn known<T>(result: Result<T, EngineError>) -> Known<T> {
    result.map_err(|error| Unknown { message: error.to_string() })
}

fn many(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub(in super::super) fn health(health: &engine_client::Health) -> Health {
    Health {
        color: match health.status {
            engine_client::Color::Green => Color::Green,
            engine_client::Color::Yellow => Color::Yellow,
            engine_client::Color::Red => Color::Red,
            engine_client::Color::Unknown => Color::Unknown,
        },
        timed_out: health.timed_out,
        data_nodes: many(health.number_of_data_nodes),
        initializing: many(health.initializing_shards),
        relocating: many(health.relocating_shards),
        unassigned: many(health.unassigned_shards),
        delayed: many(health.delayed_unassigned_shards),
        in_flight_fetch: many(health.number_of_in_flight_fetch),
    }
}

fn voting(voting: engine_client::Voting) -> Voting {
    match voting {
        engine_client::Voting::Configurations { committed, accepted, exclusions } => {
            Voting::Configurations { committed, accepted, excluded: exclusions }
        }
        engine_client::Voting::MinimumMasterNodes(minimum) => Voting::MinimumMasterNodes(minimum),
    }
}

fn copy(shard: &engine_client::Shard) -> ShardCopy {
    ShardCopy {
        index: shard.index.to_string(),
        shard: shard.number,
        primary: shard.primary,
        started: matches!(shard.state, ShardState::Started | ShardState::Relocating),
        node: shard.node_name.as_ref().map(ToString::to_string),
    }
}

fn allocation(allocation: engine_client::Allocation) -> Allocation {
    Allocation {
        marker: allocation.marker.and_then(|text| serde_json::from_str(&text).ok()),
        setting: AllocationBefore {
            persistent: allocation.persistent,
            transient: allocation.transient,
        },
    }
}

fn record(record: engine_client::Record) -> Record {
    Record {
        node_id: record.node_id,
        is_restart: record.kind == RecordKind::Restart,
        reason: record.reason,
        complete: record.status == RecordStatus::Complete,
    }
}

#[cfg(test)]
mod tests;
