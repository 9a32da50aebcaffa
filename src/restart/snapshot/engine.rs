//! The engine's own view of its cluster.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Known, known};
use crate::AllocationBefore;

/// What the engine says about its cluster.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Engine {
    /// `elasticsearch 8.19.0` or the like, for people.
    pub version: String,
    /// Uuid of its cluster.
    pub cluster_uuid: String,
    /// The nodes it lists.
    pub nodes: Vec<Node>,
    /// Id of the elected master.
    pub master: Option<String>,
    /// Its health.
    #[serde(with = "known")]
    #[schemars(with = "known::Written<Health>")]
    pub health: Known<Health>,
    /// Who may vote.
    #[serde(with = "known")]
    #[schemars(with = "known::Written<Voting>")]
    pub voting: Known<Voting>,
    /// Every copy of every shard.
    #[serde(with = "known")]
    #[schemars(with = "known::Written<Vec<ShardCopy>>")]
    pub shards: Known<Vec<ShardCopy>>,
    /// Its allocation setting.
    #[serde(with = "known")]
    #[schemars(with = "known::Written<Allocation>")]
    pub allocation: Known<Allocation>,
    /// Its node-shutdown records; none where the engine has no such thing.
    #[serde(with = "known")]
    #[schemars(with = "known::Written<Option<Vec<Record>>>")]
    pub records: Known<Option<Vec<Record>>>,
}

/// One node in the engine's list.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its id, which survives restarts.
    pub id: String,
    /// Its name.
    pub name: String,
    /// New with every process.
    pub ephemeral_id: String,
    /// Its roles, as the engine spells them; none is a coordinating-only node. A node that has not
    /// told its roles yet is never part of a snapshot.
    pub roles: BTreeSet<String>,
    /// Value of its zone attribute.
    pub zone: Option<String>,
    /// Its version.
    pub version: String,
}

impl Node {
    /// It can be elected.
    pub fn is_master_eligible(&self) -> bool {
        self.roles.contains("master") || self.roles.contains("cluster_manager")
    }

    /// It can hold shards: data of a tier, or what OpenSearch's `search` and `warm` nodes and a
    /// stateless Elasticsearch's `index` nodes hold.
    pub fn holds_data(&self) -> bool {
        let holds = |role: &str| matches!(role, "data" | "search" | "warm" | "index");
        self.roles.iter().any(|role| holds(role) || role.starts_with("data_"))
    }
}

/// Color of a cluster's health.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Color {
    /// Every copy is there.
    Green,
    /// A replica is missing.
    Yellow,
    /// A primary is missing.
    Red,
    /// A word we do not know.
    Unknown,
}

/// The cluster's health.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Its color.
    pub color: Color,
    /// The engine gave up waiting for its queue to calm down.
    pub timed_out: bool,
    /// Nodes that can hold shards.
    pub data_nodes: u32,
    /// Shards being built.
    pub initializing: u32,
    /// Shards moving.
    pub relocating: u32,
    /// Copies that are nowhere.
    pub unassigned: u32,
    /// Of these, waiting for their node to come back.
    pub delayed: u32,
    /// Questions about shards not answered yet.
    pub in_flight_fetch: u32,
}

/// Whose votes elect a master; ids of nodes.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Voting {
    /// By voting configurations (Elasticsearch from 7, OpenSearch).
    Configurations {
        /// The last committed one.
        committed: BTreeSet<String>,
        /// The last accepted one.
        accepted: BTreeSet<String>,
        /// Names of the nodes that are asked to give up their vote.
        excluded: BTreeSet<String>,
    },
    /// By `discovery.zen.minimum_master_nodes` (Elasticsearch 6).
    MinimumMasterNodes(u32),
}

/// One copy of a shard.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct ShardCopy {
    /// Name of the index.
    pub index: String,
    /// Number of the shard.
    pub shard: u32,
    /// It is the primary.
    pub primary: bool,
    /// It is in the state `STARTED`; a copy that moves away counts as started where it is.
    pub started: bool,
    /// Name of the node; none if it is nowhere.
    pub node: Option<String>,
}

/// `cluster.routing.allocation.enable`, and our mark beside it.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Allocation {
    /// The setting as it stands; the transient one wins.
    pub setting: AllocationBefore,
    /// `cluster.metadata.stayput`; a value that is not ours to read counts as none.
    pub marker: Option<Marker>,
}

/// What we write beside the setting in the same request, so that whoever finds it can undo it.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Marker {
    /// The SearchCluster, as `namespace/name`: another one's is not ours to undo.
    pub cluster: String,
    /// Id of the restart.
    pub restart: String,
    /// The setting before us.
    pub before: AllocationBefore,
}

/// A node-shutdown record.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Id of the node.
    pub node_id: String,
    /// It announces a restart, nothing more.
    pub is_restart: bool,
    /// Who put it there: our restarts' ids.
    pub reason: String,
    /// The engine has prepared for it.
    pub complete: bool,
}
