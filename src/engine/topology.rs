//! Reads the cluster as a whole: nodes and votes of one cluster state, and the shard copies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::time::Instant;

use super::answer::Answer;
use super::limited;
use super::shards::Routing;
use super::transport::{Call, EndpointIndex, MASTER_TIMEOUT};
use super::{Engine, EngineClient, EngineError, Shard, Version, identify, shards};
use crate::nodes::Details;
use crate::nodes::{Snapshots, by_node};
use stayput_restart::{RunningSnapshot, Voting};

/// The cluster, as its elected master has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// Id of the cluster.
    pub cluster_uuid: Option<String>,
    /// Version of the cluster state; grows with every change.
    pub version: u64,
    /// Id of the elected master, while there is one.
    pub elected_master: Option<String>,
    /// The votes that elect a master.
    pub voting: Voting,
    /// Nodes in the order of their ids. Two nodes can have the same name.
    pub nodes: Vec<Node>,
    /// Shard copies by index, number, replica before primary. See [`super::unreplicated`].
    pub shards: Arc<[Shard]>,
    /// Closed indices that the engine neither replicates nor moves: it lists no copies of them, which are on
    /// the disks of some nodes all the same. These were closed by Elasticsearch before 7.2; later versions of
    /// both engines keep them so until they are opened.
    pub immovable: BTreeSet<String>,
    /// True if the elected master has read indices, persistent settings and shutdown records from the disks
    /// of the nodes. Until then the engine reports none of them.
    pub recovered: bool,
    /// Endpoint that answered. From Elasticsearch 9.2 on each node answers with a state of its own, so that
    /// another one may have older copies.
    pub(super) place: EndpointIndex,
}

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Id of the node, stored in its data path.
    pub id: String,
    /// The node's name.
    pub name: String,
    /// Id of the process: new at every start.
    pub ephemeral_id: String,
    /// Address and port of the node for other nodes.
    pub transport_address: String,
    /// Attributes such as `zone`; engines add some of their own.
    pub attributes: BTreeMap<String, String>,
    /// Roles as the engine writes them, old names too: `master` and `cluster_manager`. `None` if the node did
    /// not answer the master in time.
    pub roles: Option<BTreeSet<String>>,
    /// Version of the engine; `None` if the node did not answer in time.
    pub version: Option<Version>,
    /// Start of the node's JVM, in milliseconds since the epoch, by that machine's clock; for people. `None`
    /// if the node did not answer in time.
    pub jvm_start_ms: Option<u64>,
    /// Largest heap of the node's JVM, in bytes; `None` if the node did not answer in time.
    pub heap_max: Option<u64>,
    /// Data directories of the node, on its own file system. Empty if the node did not answer in time.
    pub data_paths: Vec<String>,
    /// The snapshot that is being taken of the node's shards; of several the latest.
    pub snapshot: Option<RunningSnapshot>,
}

impl EngineClient {
    /// Reads the cluster as a whole: [`Self::listed`], then [`Self::completed`].
    ///
    /// # Errors
    /// See [`EngineError`]; a cluster without a master refuses.
    pub async fn topology(
        &self,
        engine: &Engine,
        before: Option<&Topology>,
    ) -> Result<Topology, EngineError> {
        let listed = self.listed(engine, before).await?;
        Ok(self.completed(listed, before).await?.0)
    }

    /// Reads nodes and votes: one small cluster state. Without shard copies, and without details of processes
    /// that have not reported theirs in `before`, the last topology.
    ///
    /// # Errors
    /// See [`Self::topology`].
    pub async fn listed(
        &self,
        engine: &Engine,
        before: Option<&Topology>,
    ) -> Result<Topology, EngineError> {
        let call = state_call();
        let minimum = async {
            if !engine.has_minimum_master_nodes() {
                return Ok(None);
            }
            parse_minimum(&self.transport.send(&minimum_call()).await?).map(Some)
        };
        let ((state, place), minimum) = tokio::try_join!(self.transport.send_led(&call), minimum)?;
        let mut topology = Topology { place, ..parse(&state, minimum)? };
        if topology.is_led_without_configurations() {
            let minimum = parse_minimum(&self.transport.send(&minimum_call()).await?)?;
            topology.voting = Voting::MinimumMasterNodes(minimum);
        }
        Ok(topology.with_details_of(before))
    }

    /// Adds the parts that `before` does not have: the shard copies if the state is another one, and details
    /// of processes that have not reported theirs yet. The copies are never older than the nodes. A node that
    /// does not report its details in time is listed without them. Also returns the time at which the copies
    /// had come: for the details each node is asked.
    ///
    /// The shard copies may take as much as 128 MiB, which is 1.4 million of them.
    ///
    /// # Errors
    /// See [`Self::topology`].
    pub async fn completed(
        &self,
        mut listed: Topology,
        before: Option<&Topology>,
    ) -> Result<(Topology, Instant), EngineError> {
        let known = before.filter(|before| listed.is_state_of(before));
        let shards = async {
            if let Some(before) = known {
                let (shards, immovable) = (Arc::clone(&before.shards), before.immovable.clone());
                return Ok((Routing { shards, immovable }, Instant::now()));
            }
            let call = shards::routing_call();
            let answer = self.transport.send_to(listed.place, &call).await?;
            Ok((shards::parse(&answer, &listed.nodes)?, Instant::now()))
        };
        let details = async {
            if listed.nodes.iter().all(|node| node.roles.is_some()) {
                Ok(Details::default())
            } else {
                self.details().await
            }
        };
        let ((routing, read_at), details) = tokio::try_join!(shards, details)?;
        listed.shards = routing.shards;
        listed.immovable = routing.immovable;
        listed.add_details(details);
        listed.raise_minimum();
        Ok((listed, read_at))
    }
}

impl Topology {
    /// The nodes alone, which do not pass for those of a whole state: the next look reads the shard copies,
    /// whatever has changed since.
    pub fn without_copies(self) -> Self {
        // No state has this version.
        Self { version: 0, ..self }
    }

    /// Version of the elected master, if there is one and it has reported its version.
    pub(super) fn master_version(&self) -> Option<Version> {
        let id = self.elected_master.as_ref()?;
        self.nodes.iter().find(|node| node.id == *id)?.version
    }

    /// True for an elected master without voting configurations: an Elasticsearch 6, also if a later version
    /// has answered: that one prints them empty.
    pub(super) fn is_led_without_configurations(&self) -> bool {
        let is_empty = match &self.voting {
            Voting::Configurations { committed, accepted, .. } => {
                committed.is_empty() && accepted.is_empty()
            }
            Voting::MinimumMasterNodes(_) => false,
        };
        is_empty && self.elected_master.is_some()
    }

    /// Raises the minimum to a majority while Elasticsearch 6 is upgraded: the node that answered may not
    /// have the minimum that the master has, since its default is 1.
    pub(super) fn raise_minimum(&mut self) {
        let is_later = |node: &Node| node.version.is_some_and(|version| version.major > 6);
        let may_lead = |node: &&Node| node.roles.as_ref().is_none_or(|all| all.contains("master"));
        if let Voting::MinimumMasterNodes(minimum) = &mut self.voting
            && self.nodes.iter().any(is_later)
        {
            let majority = self.nodes.iter().filter(may_lead).count() / 2 + 1;
            *minimum = u32::try_from(majority).unwrap_or(u32::MAX).max(*minimum);
        }
    }

    /// True if both were read from the same cluster state: the versions of one master never repeat.
    pub(super) fn is_state_of(&self, other: &Self) -> bool {
        self.recovered
            && other.recovered
            && (self.version, &self.cluster_uuid) == (other.version, &other.cluster_uuid)
            && self.master_process().is_some_and(|this| other.master_process() == Some(this))
    }

    /// Ephemeral id of the elected master.
    pub fn master_process(&self) -> Option<&str> {
        let id = self.elected_master.as_ref()?;
        let node = self.nodes.iter().find(|node| node.id == *id)?;
        Some(&node.ephemeral_id)
    }

    /// Takes details over from `before`. A process that hangs does not report its details, and they do not
    /// change while it runs.
    pub(super) fn with_details_of(mut self, before: Option<&Self>) -> Self {
        let before = before.map_or(&[][..], |before| &before.nodes);
        let known: BTreeMap<&str, &Node> =
            before.iter().map(|node| (node.ephemeral_id.as_str(), node)).collect();
        for node in &mut self.nodes {
            if let Some(known) = known.get(node.ephemeral_id.as_str()) {
                node.roles.clone_from(&known.roles);
                node.version = known.version;
                node.jvm_start_ms = known.jvm_start_ms;
                node.heap_max = known.heap_max;
                node.data_paths.clone_from(&known.data_paths);
            }
        }
        self
    }

    pub(super) fn add_details(&mut self, mut details: Details) {
        for node in self.nodes.iter_mut().filter(|node| node.roles.is_none()) {
            if let Some(reported) = details.remove(&node.id) {
                node.data_paths = reported.data_paths();
                node.roles = Some(reported.roles);
                node.version = Some(reported.version);
                node.jvm_start_ms = Some(reported.jvm.start_time_in_millis);
                node.heap_max = reported.jvm.mem.heap_max_in_bytes;
            }
        }
    }
}

/// Name of an index that does not exist: with no name at all the engine would copy, send and print the
/// settings and mappings of every index for each answer, before it filters them.
const NO_INDEX: &str = "stayput-no-index";

/// The request for nodes and votes. Without shard copies: the engine would list those of the same indices
/// only.
pub(super) fn state_call() -> Call {
    Call::get(format!(
        "/_cluster/state/version,master_node,nodes,metadata,blocks,customs/{NO_INDEX}\
         ?master_timeout={MASTER_TIMEOUT}\
         &filter_path=cluster_uuid,version,master_node,cluster_manager_node,nodes.*.name,\
         nodes.*.ephemeral_id,nodes.*.transport_address,nodes.*.attributes,\
         metadata.cluster_coordination,blocks.global,{}",
        crate::nodes::FIELDS
    ))
    .of_shards()
}

pub(super) fn minimum_call() -> Call {
    Call::get(format!(
        "/_cluster/settings?include_defaults=true&master_timeout={MASTER_TIMEOUT}\
         &filter_path=**.minimum_master_nodes"
    ))
}

/// The effective minimum: a transient value wins over a persistent one, that over the node's own.
pub(super) fn parse_minimum(answer: &Answer) -> Result<u32, EngineError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Body {
        transient: Level,
        persistent: Level,
        defaults: Level,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Level {
        discovery: Discovery,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Discovery {
        zen: Zen,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Zen {
        minimum_master_nodes: Option<String>,
    }
    let Body { transient, persistent, defaults } = answer.read()?;
    let found = [transient, persistent, defaults]
        .into_iter()
        .find_map(|level| level.discovery.zen.minimum_master_nodes)
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
struct State<'a> {
    cluster_uuid: Option<String>,
    version: u64,
    #[serde(alias = "cluster_manager_node")]
    master_node: Option<String>,
    #[serde(default, deserialize_with = "limited::by_node")]
    nodes: BTreeMap<String, Listed>,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    blocks: Blocks,
    #[serde(default, borrow)]
    snapshots: Snapshots<'a>,
}

/// Operations that the cluster refuses at present.
#[derive(Debug, Default, Deserialize)]
struct Blocks {
    #[serde(default)]
    global: GlobalBlocks,
}

#[derive(Debug, Default, Deserialize)]
struct GlobalBlocks {
    /// The block `state not recovered / initialized`; its number is the same in all versions of both engines
    /// (`GatewayService.STATE_NOT_RECOVERED_BLOCK`).
    #[serde(rename = "1")]
    not_recovered: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct Listed {
    name: String,
    ephemeral_id: String,
    transport_address: String,
    #[serde(default, deserialize_with = "limited::by_node")]
    attributes: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    cluster_coordination: Option<Coordination>,
}

#[derive(Debug, Deserialize)]
struct Coordination {
    #[serde(deserialize_with = "limited::of_nodes")]
    last_committed_config: BTreeSet<String>,
    #[serde(deserialize_with = "limited::of_nodes")]
    last_accepted_config: BTreeSet<String>,
    #[serde(default, deserialize_with = "limited::of_nodes")]
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
            excluded: coordination.voting_config_exclusions.into_iter().map(name).collect(),
        }
    }
}

/// Reads nodes and votes: neither shard copies nor details that nodes report of themselves.
pub(super) fn parse(answer: &Answer, minimum: Option<u32>) -> Result<Topology, EngineError> {
    let state: State<'_> = answer.read()?;
    let State { cluster_uuid, version, master_node, nodes, metadata, blocks, snapshots } = state;
    // The minimum may have been read because of an outdated node.
    let voting = match (metadata.cluster_coordination, minimum) {
        (Some(coordination), _) => coordination.into(),
        (None, Some(minimum)) => Voting::MinimumMasterNodes(minimum),
        (None, None) => return Err(answer.unexpected("it has no voting configuration")),
    };
    let mut running = by_node(snapshots);
    let node = |(id, listed): (String, Listed)| Node {
        snapshot: running.remove(&id),
        id,
        name: listed.name,
        ephemeral_id: listed.ephemeral_id,
        transport_address: listed.transport_address,
        attributes: listed.attributes,
        roles: None,
        version: None,
        jvm_start_ms: None,
        heap_max: None,
        data_paths: Vec::new(),
    };
    Ok(Topology {
        cluster_uuid: cluster_uuid.and_then(identify::known),
        version,
        elected_master: master_node,
        voting,
        nodes: nodes.into_iter().map(node).collect(),
        shards: Arc::default(),
        immovable: BTreeSet::new(),
        recovered: blocks.global.not_recovered.is_none(),
        place: EndpointIndex::default(),
    })
}
