//! The nodes in the cluster: the small list that is repeated while we wait for one, the details that each
//! reports about itself, and the snapshots that are taken of their shards.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use stayput_http::shorten;
use stayput_restart::{RunningSnapshot, Time};

use crate::answer::Answer;
use crate::limited::Texts;
use crate::transport::{Call, MASTER_TIMEOUT};
use crate::{Distribution, Engine, EngineClient, EngineError, Version, identify, limited};

/// The cluster's node list, as its elected master has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Members {
    /// The cluster's own id.
    pub cluster_uuid: Option<String>,
    /// The id of the elected master.
    pub elected_master: Option<String>,
    /// Nodes in the order of their ids. Two nodes can have the same name.
    pub nodes: Vec<Member>,
}

/// A node in the list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// Id of the node, stored in its data path.
    pub id: String,
    /// The node's name.
    pub name: String,
    /// Id of the process: new at every start.
    pub ephemeral_id: String,
}

impl EngineClient {
    /// Reads the nodes in the cluster.
    ///
    /// # Errors
    /// See [`EngineError`]; a cluster without a master refuses.
    pub async fn members(&self) -> Result<Members, EngineError> {
        let (answer, _) = self.transport.send_led(&members_call()).await?;
        parse_members(&answer)
    }

    /// The answer of a node that has just named the master that it follows. Elasticsearch answers from the
    /// state of the node that is asked, about cluster settings from 9.0 on and about those of indices from
    /// 9.1 on. A node that has not joined would answer that there are none. In OpenSearch the master answers.
    pub(super) async fn of_a_member(
        &self,
        engine: &Engine,
        call: &Call,
    ) -> Result<Answer, EngineError> {
        if engine.distribution == Distribution::OpenSearch {
            return self.transport.send(call).await;
        }
        let (_, place) = self.transport.send_led(&master_call()).await?;
        self.transport.send_to(place, call).await
    }
}

/// The request for the elected master alone.
fn master_call() -> Call {
    Call::get(format!(
        "/_cluster/state/master_node?master_timeout={MASTER_TIMEOUT}\
         &filter_path=master_node,cluster_manager_node"
    ))
}

pub(super) fn members_call() -> Call {
    Call::get(format!(
        "/_cluster/state/version,master_node,nodes?master_timeout={MASTER_TIMEOUT}&filter_path=\
         cluster_uuid,master_node,cluster_manager_node,nodes.*.name,nodes.*.ephemeral_id"
    ))
    .of_nodes()
}

pub(super) fn parse_members(answer: &Answer) -> Result<Members, EngineError> {
    #[derive(Deserialize)]
    struct Body {
        cluster_uuid: Option<String>,
        #[serde(alias = "cluster_manager_node")]
        master_node: Option<String>,
        #[serde(default, deserialize_with = "limited::by_node")]
        nodes: BTreeMap<String, Listed>,
    }
    #[derive(Deserialize)]
    struct Listed {
        name: String,
        ephemeral_id: String,
    }
    let Body { cluster_uuid, master_node, nodes } = answer.read()?;
    let nodes = nodes
        .into_iter()
        .map(|(id, Listed { name, ephemeral_id })| Member { id, name, ephemeral_id })
        .collect();
    let cluster_uuid = cluster_uuid.and_then(identify::known);
    Ok(Members { cluster_uuid, elected_master: master_node, nodes })
}

/// Details of each node, by its id.
pub(super) type Details = BTreeMap<String, Reported>;

/// Details that one node has reported.
#[derive(Debug, Deserialize)]
pub(super) struct Reported {
    pub(super) version: Version,
    #[serde(deserialize_with = "limited::of_nodes")]
    pub(super) roles: BTreeSet<String>,
    pub(super) jvm: Jvm,
    #[serde(default)]
    settings: Settings,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Settings {
    path: Path,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Path {
    data: Texts,
    home: Option<String>,
}

impl Reported {
    /// The node's data directories: those of `path.data`, which may be several after a comma, or `data` in
    /// the engine's own directory. Empty if they are not reported.
    pub(super) fn data_paths(&self) -> Vec<String> {
        let Path { data, home } = &self.settings.path;
        let given = data.0.iter().flat_map(|text| text.split(','));
        let given: Vec<String> = given.map(|path| path.trim().to_owned()).collect();
        if given.is_empty() {
            home.iter().map(|home| format!("{home}/data")).collect()
        } else {
            given
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Jvm {
    pub(super) start_time_in_millis: u64,
    #[serde(default)]
    pub(super) mem: Memory,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Memory {
    pub(super) heap_max_in_bytes: Option<u64>,
}

impl EngineClient {
    /// Asks every node for its details; leaves out those that do not answer in time. Empty if the node that
    /// asks them does not answer.
    pub(super) async fn details(&self) -> Result<Details, EngineError> {
        let answer = self.transport.send(&details_call()).await;
        match answer.and_then(|answer| parse_details(&answer)) {
            Err(EngineError::NotReachable(_) | EngineError::Unanswered(_)) => Ok(Details::new()),
            read => read,
        }
    }
}

/// The request for details. A node that does not answer within a second is asked again at the next look.
pub(super) fn details_call() -> Call {
    let path = "/_nodes/_all/settings,jvm?timeout=1s&filter_path=\
                nodes.*.version,nodes.*.roles,nodes.*.jvm.start_time_in_millis,\
                nodes.*.jvm.mem.heap_max_in_bytes,nodes.*.settings.path.data,nodes.*.settings.path.home";
    Call::get(path).of_nodes()
}

pub(super) fn parse_details(answer: &Answer) -> Result<Details, EngineError> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(default, deserialize_with = "limited::by_node")]
        nodes: Details,
    }
    Ok(answer.read::<Body>()?.nodes)
}

/// Fields of the cluster state to read: the names of running snapshots, and the shards that they still need.
pub(super) const FIELDS: &str = "snapshots.snapshots.repository,snapshots.snapshots.snapshot,\
                                 snapshots.snapshots.start_time_millis,\
                                 snapshots.snapshots.shards.state,snapshots.snapshots.shards.node";

/// Limit of the length of a name; longer ones are shortened, since each node has one.
const MAX_NAME_CHARS: usize = 200;

/// The field `snapshots` of the cluster state; absent while no snapshot is taken.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Snapshots<'a> {
    #[serde(default, borrow, deserialize_with = "limited::of_nodes")]
    snapshots: Vec<Entry<'a>>,
}

#[derive(Debug, Deserialize)]
struct Entry<'a> {
    repository: String,
    snapshot: String,
    start_time_millis: u64,
    #[serde(default, borrow)]
    shards: Vec<Shard<'a>>,
}

/// A shard of a snapshot. A large cluster has 100,000: nothing is allocated for one.
#[derive(Debug, Deserialize)]
struct Shard<'a> {
    state: State,
    /// Id of the shard's node, which no engine writes with escapes; `None` for a shard that is queued behind
    /// another snapshot.
    node: Option<&'a str>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum State {
    /// The shard is being read.
    Init,
    /// The shard will be read as soon as it has started on its node.
    Waiting,
    /// An end (`SUCCESS`, `FAILED`, `MISSING`), an end that comes anyway (`ABORTED`), or no reading yet (`QUEUED`,
    /// `PAUSED_FOR_NODE_REMOVAL`).
    #[serde(other)]
    Other,
}

/// The running snapshot of each node whose shards it needs, by id of the node; of several the latest.
pub(super) fn by_node(all: Snapshots<'_>) -> BTreeMap<String, RunningSnapshot> {
    let mut entries = all.snapshots;
    entries.sort_by_key(|entry| entry.start_time_millis);
    entries.into_iter().flat_map(nodes_of).collect()
}

fn nodes_of(entry: Entry<'_>) -> impl Iterator<Item = (String, RunningSnapshot)> {
    let mut name = format!("{}:{}", entry.repository, entry.snapshot);
    shorten(&mut name, MAX_NAME_CHARS);
    let since = Time(entry.start_time_millis);
    let mut shards: BTreeMap<&str, u32> = BTreeMap::new();
    let is_needed = |shard: &Shard<'_>| matches!(shard.state, State::Init | State::Waiting);
    for node in entry.shards.into_iter().filter(is_needed).filter_map(|shard| shard.node) {
        *shards.entry(node).or_default() += 1;
    }
    shards.into_iter().map(move |(node, shards)| {
        (node.to_owned(), RunningSnapshot { name: name.clone(), since, shards })
    })
}
