//! The cluster's state: decided by the elected master and stored by every member.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// One member, with its data from when it joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeInfo {
    /// Stored in the data path.
    pub(crate) id: String,
    pub(crate) name: String,
    /// Different for every process.
    pub(crate) ephemeral_id: String,
    /// `host:port` for the other nodes.
    pub(crate) transport: String,
    /// `host:port` for the other nodes.
    pub(crate) http: String,
    pub(crate) roles: BTreeSet<String>,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) version: String,
    pub(crate) pid: u32,
    pub(crate) started_ms: u64,
    /// `path.data`.
    #[serde(default)]
    pub(crate) data: String,
}

impl NodeInfo {
    /// Whether it may vote and be elected.
    pub(crate) fn is_master_eligible(&self) -> bool {
        self.roles.contains("master") || self.roles.contains("cluster_manager")
    }

    /// Whether it may hold shards.
    pub(crate) fn is_data(&self) -> bool {
        self.roles.iter().any(|role| role == "data" || role.starts_with("data_"))
    }
}

/// One version of the state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) term: u64,
    pub(crate) version: u64,
    /// Empty before the first election.
    pub(crate) cluster_uuid: String,
    pub(crate) master: Option<String>,
    /// By id.
    pub(crate) nodes: BTreeMap<String, NodeInfo>,
    /// Ids of nodes; a majority of them elects and commits.
    pub(crate) last_committed_config: BTreeSet<String>,
    /// The voting configuration after this version is committed.
    pub(crate) last_accepted_config: BTreeSet<String>,
    pub(crate) voting_config_exclusions: BTreeSet<(String, String)>,
    pub(crate) persistent: BTreeMap<String, String>,
    /// Cleared when the whole cluster stops.
    pub(crate) transient: BTreeMap<String, String>,
    pub(crate) indices: BTreeMap<String, Index>,
    /// Closed ones. As Elasticsearch before 7.2: they have no copies in the routing table, and nobody moves
    /// them.
    #[serde(default)]
    pub(crate) closed: BTreeMap<String, Index>,
    /// Node-shutdown records by node id.
    pub(crate) shutdowns: BTreeMap<String, Shutdown>,
}

/// One index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Index {
    pub(crate) uuid: String,
    pub(crate) created_ms: u64,
    /// How long a copy waits for its node to return.
    pub(crate) delayed_timeout_ms: u64,
    pub(crate) shards: Vec<Shard>,
}

impl Index {
    /// How many replicas each shard has.
    pub(crate) fn replicas(&self) -> usize {
        let stays = |copy: &&ShardCopy| copy.moves_from.is_none();
        let copies =
            self.shards.first().map_or(0, |shard| shard.copies.iter().filter(stays).count());
        copies.saturating_sub(1)
    }
}

/// One shard: a primary and its replicas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shard {
    /// Increases with every new primary: writes of older primaries are refused.
    pub(crate) primary_term: u64,
    /// Nodes that have every acknowledged document. Empty if there never was one.
    pub(crate) in_sync: BTreeSet<String>,
    pub(crate) copies: Vec<ShardCopy>,
}

impl Shard {
    /// The node to which the copy on `node` moves.
    pub(crate) fn moves_to(&self, node: &str) -> Option<&str> {
        let is_from = |copy: &&ShardCopy| copy.moves_from.as_deref() == Some(node);
        self.copies.iter().find(is_from).and_then(ShardCopy::node)
    }

    /// The node of the primary, if that is started.
    pub(crate) fn primary_node(&self) -> Option<&str> {
        self.copies.iter().find(|copy| copy.primary).and_then(ShardCopy::started_on)
    }

    /// The nodes whose copies are started, the primary's first.
    pub(crate) fn started(&self) -> impl Iterator<Item = &str> {
        let primaries = self.copies.iter().filter(|copy| copy.primary);
        primaries
            .chain(self.copies.iter().filter(|copy| !copy.primary))
            .filter_map(ShardCopy::started_on)
    }
}

/// One copy of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShardCopy {
    pub(crate) primary: bool,
    pub(crate) place: CopyState,
    /// The node it was on before it was unassigned.
    pub(crate) last_node: Option<String>,
    /// The node with the copy whose place it takes when it is complete.
    #[serde(default)]
    pub(crate) moves_from: Option<String>,
}

impl ShardCopy {
    /// A copy that was never placed.
    pub(crate) fn new(primary: bool, reason: &str) -> Self {
        let place = CopyState::Unassigned {
            reason: reason.to_owned(),
            since_ms: now_ms(),
            delayed_ms: None,
        };
        Self { primary, place, last_node: None, moves_from: None }
    }

    /// The node it is placed on, started or not.
    pub(crate) fn node(&self) -> Option<&str> {
        match &self.place {
            CopyState::Unassigned { .. } => None,
            CopyState::Initializing { node, .. } | CopyState::Started { node } => Some(node),
        }
    }

    /// The node it is started on.
    pub(crate) fn started_on(&self) -> Option<&str> {
        match &self.place {
            CopyState::Started { node } => Some(node),
            CopyState::Unassigned { .. } | CopyState::Initializing { .. } => None,
        }
    }
}

/// Where a copy is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CopyState {
    /// Unassigned. `delayed_ms`: until then only its last node may get it.
    Unassigned { reason: String, since_ms: u64, delayed_ms: Option<u64> },
    /// Being recovered on the node.
    Initializing { node: String, since_ms: u64 },
    /// Started on the node.
    Started { node: String },
}

/// The registered shutdown of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shutdown {
    /// `restart`, `remove` or `replace`.
    pub(crate) kind: String,
    pub(crate) reason: String,
    pub(crate) started_ms: u64,
    pub(crate) allocation_delay: Option<String>,
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// A duration in the format of the engines (`30s`, `1m`, `0`), in milliseconds.
pub(crate) fn time_value(text: &str) -> Option<u64> {
    let split = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "" if number == "0" => 1,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}
