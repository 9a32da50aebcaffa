//! One cluster state: nodes, votes and shard copies at the same moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::answer::Answer;
use super::shards::RoutingTable;
use super::transport::Call;
use super::{Engine, EngineClient, EngineError, Shard, Version, identify};

/// The cluster state of the elected master at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Topology {
    /// The cluster's own id.
    pub cluster_uuid: Option<String>,
    /// The cluster state's version; grows with every change.
    pub version: u64,
    /// The id of the elected master; none while there is none.
    pub elected_master: Option<String>,
    /// The votes that elect a master.
    pub voting: Voting,
    /// By id. Two nodes can have the same name.
    pub nodes: Vec<Node>,
    /// By index, number, replica before primary. See [`super::unreplicated`].
    pub shards: Vec<Shard>,
    /// Whether the elected master has read indices, persistent settings and shutdown records from
    /// the disks of the nodes. Until then the engine reports none of them.
    pub recovered: bool,
}

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// Stored in the data path.
    pub id: String,
    /// The node's name.
    pub name: String,
    /// New at every start of the process.
    pub ephemeral_id: String,
    /// Its address and port for other nodes.
    pub transport_address: String,
    /// Such as `zone`; engines add some of their own.
    pub attributes: BTreeMap<String, String>,
    /// As the engine writes them, old names too: `master` and `cluster_manager`. None if the node
    /// did not answer the master in time.
    pub roles: Option<BTreeSet<String>>,
    /// None if the node did not answer in time.
    pub version: Option<Version>,
    /// When its JVM was started, in milliseconds since the epoch, by that machine's clock; for
    /// people. None if the node did not answer in time.
    pub jvm_start_ms: Option<u64>,
}

/// The votes that elect a master.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Voting {
    /// A majority of each of two sets of node ids, which are the same unless one is being replaced.
    Configurations {
        /// The last committed configuration.
        committed: BTreeSet<String>,
        /// The last accepted one.
        accepted: BTreeSet<String>,
        /// The names of the nodes that are excluded from voting; ids where a name is not known.
        exclusions: BTreeSet<String>,
    },
    /// Elasticsearch 6: this many of the master-eligible nodes.
    MinimumMasterNodes(u32),
}

impl EngineClient {
    /// Reads the cluster as a whole. Two requests, three to Elasticsearch 6: nodes, votes and shard
    /// copies come from one cluster state; roles, versions and JVM start times from the nodes
    /// themselves.
    ///
    /// The cluster state may be as large as 256 MiB, which is 10,000 nodes with 200 copies each.
    ///
    /// # Errors
    /// See [`EngineError`]; a cluster without a master refuses with 503.
    pub async fn topology(&self, engine: &Engine) -> Result<Topology, EngineError> {
        let timeout = self.transport.master_timeout();
        let (state, details) = (state_call(&timeout), details_call(&timeout));
        let (state, details) =
            tokio::try_join!(self.transport.send(&state), self.transport.send(&details))?;
        let minimum = if engine.has_minimum_master_nodes() {
            Some(parse_minimum(&self.transport.send(&minimum_call(&timeout)).await?)?)
        } else {
            None
        };
        parse(&state, parse_details(&details)?, minimum)
    }
}

/// The parameters leave out what would make the answer large: settings, mappings, allocation ids.
pub(super) fn state_call(timeout: &str) -> Call {
    Call::get(format!(
        "/_cluster/state/version,master_node,nodes,metadata,routing_table,blocks\
         ?master_timeout={timeout}\
         &filter_path=cluster_uuid,version,master_node,cluster_manager_node,nodes.*.name,\
         nodes.*.ephemeral_id,nodes.*.transport_address,nodes.*.attributes,\
         metadata.cluster_coordination,blocks.global,\
         routing_table.indices.*.shards.*.state,routing_table.indices.*.shards.*.primary,\
         routing_table.indices.*.shards.*.node,routing_table.indices.*.shards.*.relocating_node"
    ))
    .large()
}

pub(super) fn details_call(timeout: &str) -> Call {
    Call::get(format!(
        "/_nodes/_all/jvm?timeout={timeout}&filter_path=\
         nodes.*.version,nodes.*.roles,nodes.*.jvm.start_time_in_millis"
    ))
    .large()
}

pub(super) fn minimum_call(timeout: &str) -> Call {
    Call::get(format!(
        "/_cluster/settings?include_defaults=true&master_timeout={timeout}\
         &filter_path=**.minimum_master_nodes"
    ))
}

/// The details that each node reports about itself.
#[derive(Debug, Deserialize)]
pub(super) struct Details {
    version: Version,
    roles: BTreeSet<String>,
    jvm: Jvm,
}

#[derive(Debug, Deserialize)]
struct Jvm {
    start_time_in_millis: u64,
}

pub(super) fn parse_details(answer: &Answer) -> Result<BTreeMap<String, Details>, EngineError> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(default)]
        nodes: BTreeMap<String, Details>,
    }
    Ok(answer.read::<Body>()?.nodes)
}

/// The effective value: a transient one wins over a persistent one, that over the node's own.
pub(super) fn parse_minimum(answer: &Answer) -> Result<u32, EngineError> {
    let body: Value = answer.read()?;
    let found = ["transient", "persistent", "defaults"]
        .iter()
        .map(|level| &body[level]["discovery"]["zen"]["minimum_master_nodes"])
        .find_map(Value::as_str)
        .ok_or_else(|| answer.unexpected("it has no discovery.zen.minimum_master_nodes"))?;
    // -1 is the default: a single node may elect itself.
    let value: i32 = found.parse().map_err(|_| {
        answer.unexpected(format!(
            "discovery.zen.minimum_master_nodes is {found:?}, which is not a number"
        ))
    })?;
    Ok(u32::try_from(value).unwrap_or(1).max(1))
}

#[derive(Debug, Deserialize)]
struct State {
    cluster_uuid: Option<String>,
    version: u64,
    #[serde(alias = "cluster_manager_node")]
    master_node: Option<String>,
    #[serde(default)]
    nodes: BTreeMap<String, Listed>,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    routing_table: RoutingTable,
    #[serde(default)]
    blocks: Blocks,
}

/// What the cluster refuses at present, by number.
#[derive(Debug, Default, Deserialize)]
struct Blocks {
    #[serde(default)]
    global: BTreeMap<String, IgnoredAny>,
}

/// `state not recovered / initialized`; the number is the same in all versions of both engines
/// (`GatewayService.STATE_NOT_RECOVERED_BLOCK`).
const STATE_NOT_RECOVERED: &str = "1";

#[derive(Debug, Deserialize)]
struct Listed {
    name: String,
    ephemeral_id: String,
    transport_address: String,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    cluster_coordination: Option<Coordination>,
}

#[derive(Debug, Deserialize)]
struct Coordination {
    last_committed_config: BTreeSet<String>,
    last_accepted_config: BTreeSet<String>,
    #[serde(default)]
    voting_config_exclusions: Vec<Exclusion>,
}

#[derive(Debug, Deserialize)]
struct Exclusion {
    node_id: String,
    node_name: Option<String>,
}

impl From<Coordination> for Voting {
    fn from(coordination: Coordination) -> Self {
        // `_absent_` means that the name is not known.
        let name = |exclusion: Exclusion| match exclusion.node_name {
            Some(name) if name != "_absent_" => name,
            Some(_) | None => exclusion.node_id,
        };
        Self::Configurations {
            committed: coordination.last_committed_config,
            accepted: coordination.last_accepted_config,
            exclusions: coordination.voting_config_exclusions.into_iter().map(name).collect(),
        }
    }
}

pub(super) fn parse(
    answer: &Answer,
    mut details: BTreeMap<String, Details>,
    minimum: Option<u32>,
) -> Result<Topology, EngineError> {
    let State { cluster_uuid, version, master_node, nodes, metadata, routing_table, blocks } =
        answer.read()?;
    let voting = match (metadata.cluster_coordination, minimum) {
        (_, Some(minimum)) => Voting::MinimumMasterNodes(minimum),
        (Some(coordination), None) => coordination.into(),
        (None, None) => return Err(answer.unexpected("it has no voting configuration")),
    };
    let names: BTreeMap<&str, Arc<str>> =
        nodes.iter().map(|(id, node)| (id.as_str(), node.name.as_str().into())).collect();
    let shards = routing_table.shards(&names).map_err(|error| answer.unexpected(error))?;
    let nodes = nodes
        .into_iter()
        .map(|(id, listed)| {
            let (roles, version, jvm) = match details.remove(&id) {
                Some(Details { version, roles, jvm }) => (Some(roles), Some(version), Some(jvm)),
                None => (None, None, None),
            };
            Node {
                id,
                name: listed.name,
                ephemeral_id: listed.ephemeral_id,
                transport_address: listed.transport_address,
                attributes: listed.attributes,
                roles,
                version,
                jvm_start_ms: jvm.map(|jvm| jvm.start_time_in_millis),
            }
        })
        .collect();
    let cluster_uuid = cluster_uuid.and_then(identify::known);
    let recovered = !blocks.global.contains_key(STATE_NOT_RECOVERED);
    let elected_master = master_node;
    Ok(Topology { cluster_uuid, version, elected_master, voting, nodes, shards, recovered })
}
