//! Reads the engine for nodes that leave: the exclusion, then nodes, votes and shards, then the reasons why
//! shards stay.

use std::collections::{BTreeMap, BTreeSet};

use super::{EngineView, ViewError};
use crate::credentials::{CredentialsError, Reach};
use crate::metrics::{Metrics, Side};
use stayput_declare::{Excluded, Seen, SeenNode, Votes};
use stayput_engine::{Endpoint, EngineClient, Node, Shard, ShardState, Topology, Voting};
use stayput_restart::{are_master_eligible, holds_data};

/// Limit of the nodes for which the engine explains why a shard stays: its answer names every node.
const MAX_EXPLAINED: usize = 3;

impl EngineView {
    pub(crate) async fn see_leaving(
        &mut self,
        reach: Result<Reach, CredentialsError>,
        endpoints: Vec<Endpoint>,
        leaving: &BTreeSet<String>,
        uuid: Option<&str>,
        metrics: &Metrics,
    ) -> Result<Seen, ViewError> {
        let (client, identity) = self.connect_and_identify(reach, endpoints, metrics).await?;
        let excluded = client.excluded_names(&identity).await;
        metrics.count_request(Side::Engine, "excluded_names", excluded.is_ok());
        let excluded = excluded?;
        let topology = client.topology(&identity, self.topology.as_ref()).await;
        metrics.count_request(Side::Engine, "topology", topology.is_ok());
        let topology = topology?;
        if !topology.recovered {
            return Err(ViewError::NotRecovered);
        }
        match topology.cluster_uuid.as_deref() {
            None => return Err(ViewError::NoCluster),
            Some(found) if uuid.is_some_and(|uuid| uuid != found) => {
                return Err(ViewError::OtherCluster);
            }
            Some(_) => {}
        }
        let mut seen = seen(&topology);
        seen.excluded = Excluded { persistent: excluded.persistent, transient: excluded.transient };
        explain(&client, &topology, leaving, &mut seen, metrics).await;
        Ok(seen)
    }
}

/// The state of the cluster, without the exclusion and without the reasons why shards stay.
fn seen(topology: &Topology) -> Seen {
    let mut shards: BTreeMap<&str, usize> = BTreeMap::new();
    for shard in topology.shards.iter() {
        // A shard that moves to a node is on it soon.
        for node in shard.node_name.iter().chain(&shard.relocating_to) {
            *shards.entry(node).or_default() += 1;
        }
    }
    let node = |node: &Node| {
        let roles = node.roles.as_ref();
        let seen = SeenNode {
            id: node.id.clone(),
            is_master: roles.is_none_or(are_master_eligible),
            data_roles: roles
                .into_iter()
                .flatten()
                .filter(|role| holds_data(role))
                .cloned()
                .collect(),
            roles_unknown: roles.is_none(),
            shards: shards.get(node.name.as_str()).copied().unwrap_or(0),
            stuck: None,
        };
        (node.name.clone(), seen)
    };
    let mut without_primary = topology.shards.iter();
    let without_primary =
        without_primary.find(|shard| shard.primary && shard.state == ShardState::Unassigned);
    Seen {
        nodes: topology.nodes.iter().map(node).collect(),
        without_primary: without_primary.map(|shard| shard.index.to_string()),
        immovable: topology.immovable.clone(),
        votes: match &topology.voting {
            Voting::Configurations { committed, accepted, exclusions } => Some(Votes {
                voters: committed.union(accepted).cloned().collect(),
                excluded: exclusions.clone(),
            }),
            Voting::MinimumMasterNodes(_) => None,
        },
        excluded: Excluded::default(),
    }
}

/// Asks why a shard stays, for leaving nodes from which none is being moved.
async fn explain(
    client: &EngineClient,
    topology: &Topology,
    leaving: &BTreeSet<String>,
    seen: &mut Seen,
    metrics: &Metrics,
) {
    let on = |node: &str| {
        let node = node.to_owned();
        move |shard: &&Shard| shard.node_name.as_deref() == Some(node.as_str())
    };
    let mut explained = 0;
    for (name, node) in seen.nodes.iter_mut().filter(|(name, _)| leaving.contains(*name)) {
        let mut here = topology.shards.iter().filter(on(name));
        let is_moving = here.clone().any(|shard| shard.state == ShardState::Relocating);
        let stays = here.find(|shard| shard.state == ShardState::Started);
        let Some(shard) = stays.filter(|_| !is_moving && explained < MAX_EXPLAINED) else {
            continue;
        };
        explained += 1;
        let why = client.why_it_stays(shard).await;
        metrics.count_request(Side::Engine, "explain", why.is_ok());
        node.stuck = match why {
            Ok(why) => why,
            Err(error) => Some(format!("why they stay is not known: {error}")),
        };
    }
}
