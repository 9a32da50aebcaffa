//! Questions to the engine beside the look of a restart: nodes that leave, with the reasons why shards stay;
//! the list of nodes alone; and whether the cluster of a declaration has formed.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::time::Duration;

use futures_util::future::join_all;
use stayput_declare::{Excluded, Seen, SeenNode, Votes};
use stayput_engine::{
    Endpoint, EngineClient, EngineError, Members, Node, Shard, ShardState, Topology, Voting,
};
use stayput_kube_access::cluster::SearchClusterSpec;
use stayput_restart::{Ledger, are_master_eligible, holds_data};
use tokio::time::timeout;

use crate::credentials::{CredentialsError, Reach};
use crate::metrics::{Metrics, Side};
use crate::observe::Observer;
use crate::observe::engine::{ENGINE_ANSWER_TIMEOUT, EngineView, ViewError};

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
            Voting::Configurations { committed, accepted, excluded } => Some(Votes {
                voters: committed.union(accepted).cloned().collect(),
                excluded: excluded.clone(),
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

/// Features by which the cluster of these pods is recognized.
pub(crate) struct Ours<'a> {
    /// Id of the cluster; not known before the first restart.
    pub(crate) cluster_uuid: Option<&'a str>,
    /// Names of the pods' nodes.
    pub(crate) nodes: BTreeSet<&'a str>,
}

impl EngineView {
    /// The nodes of these pods that their cluster does not list. One request; only if another
    /// cluster answers it, the other endpoints are asked as well.
    pub(crate) async fn unlisted(
        &mut self,
        reach: Result<Reach, CredentialsError>,
        endpoints: Vec<Endpoint>,
        ours: &Ours<'_>,
        metrics: &Metrics,
    ) -> Result<BTreeSet<String>, ViewError> {
        let reach = reach?;
        let client = self.connect(&reach, endpoints.clone())?;
        let first = members(&client, metrics).await?;
        if ours.is_of(&first) {
            let unlisted = ours.not_in(&first);
            if unlisted.is_empty() {
                self.elsewhere.clear();
            }
            return Ok(unlisted);
        }
        // The answer shows neither which endpoint gave it nor which others are in that cluster.
        let each = endpoints.iter().map(async |endpoint| {
            let one = slice::from_ref(endpoint);
            let one = EngineClient::new(one, &reach.access, ENGINE_ANSWER_TIMEOUT)?;
            members(&one, metrics).await
        });
        let (mut found, mut elsewhere) = (None, Vec::new());
        for (endpoint, answer) in endpoints.iter().zip(join_all(each).await) {
            match answer {
                Ok(answer) if ours.is_of(&answer) => found = found.or(Some(answer)),
                Ok(_) => elsewhere.push(endpoint.clone()),
                Err(error) => tracing::debug!("{}: {error}", endpoint.host),
            }
        }
        let Some(found) = found else { return Err(ViewError::OtherCluster) };
        if self.elsewhere != elsewhere {
            self.elsewhere = elsewhere;
            // The next client asks those of another cluster last.
            self.client = None;
            self.identity = None;
        }
        Ok(ours.not_in(&found))
    }
}

async fn members(client: &EngineClient, metrics: &Metrics) -> Result<Members, EngineError> {
    let members = client.members().await;
    metrics.count_request(Side::Engine, "members", members.is_ok());
    members
}

impl Ours<'_> {
    /// True if this is the cluster of these pods: by its id, or else because it lists most of their nodes.
    fn is_of(&self, members: &Members) -> bool {
        let listed = self.nodes.len() - self.not_in(members).len();
        match self.cluster_uuid {
            Some(uuid) => members.cluster_uuid.as_deref() == Some(uuid) && listed > 0,
            None => listed * 2 > self.nodes.len(),
        }
    }

    fn not_in(&self, members: &Members) -> BTreeSet<String> {
        let listed: BTreeSet<&str> = members.nodes.iter().map(|node| node.name.as_str()).collect();
        self.nodes.difference(&listed).map(|node| (*node).to_owned()).collect()
    }
}

/// Time limit of all answers together.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

impl Observer {
    /// Asks the engine about the leaving nodes. Reads the exclusion before the shards: an excluded node
    /// without shards then gets none.
    pub(crate) async fn see_leaving(
        &mut self,
        ledger: &Ledger,
        spec: &SearchClusterSpec,
        leaving: &BTreeSet<String>,
    ) -> Result<Seen, String> {
        let endpoints = self.endpoints_of(ledger, spec);
        if endpoints.is_empty() {
            return Err("no pod has an address at which the engine could be asked".to_owned());
        }
        let reach = self.credentials.engine(&spec.engine).await;
        let uuid = ledger.cluster_uuid.as_deref();
        let asked = self.facts.engine.see_leaving(reach, endpoints, leaving, uuid, &self.metrics);
        match timeout(ANSWER_TIMEOUT, asked).await {
            Ok(seen) => seen.map_err(|error| error.to_string()),
            Err(_) => Err("the engine does not answer in time".to_owned()),
        }
    }
}

/// Time limit of all answers together: requests of people wait meanwhile.
const FORMED_TIMEOUT: Duration = Duration::from_secs(5);

impl Observer {
    /// True if the engine has formed a cluster; false if it does not answer.
    pub(crate) async fn has_formed(&mut self, ledger: &Ledger, spec: &SearchClusterSpec) -> bool {
        let endpoints = self.endpoints_of(ledger, spec);
        if endpoints.is_empty() {
            return false;
        }
        let reach = self.credentials.engine(&spec.engine).await;
        let asked = self.facts.engine.has_formed(reach, endpoints, &self.metrics);
        match timeout(FORMED_TIMEOUT, asked).await {
            Ok(Ok(formed)) => formed,
            Ok(Err(error)) => {
                tracing::debug!("the engine cannot be asked whether it has formed: {error}");
                false
            }
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests;
