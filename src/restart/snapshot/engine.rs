//! State of the engine's cluster, as the engine reports it.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Known, ShardCopies, known};
use crate::{AllocationBefore, Time};

/// State of the engine's cluster, as the engine reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Engine {
    /// `elasticsearch 8.19.0` or the like, for people.
    pub version: String,
    /// Uuid of its cluster.
    pub cluster_uuid: String,
    /// The nodes it lists.
    pub nodes: Vec<Node>,
    /// Id of the elected master.
    pub elected_master: Option<String>,
    /// Health of the cluster.
    #[serde(with = "known")]
    #[schemars(with = "known::Written<Health>")]
    pub health: Known<Health>,
    /// The nodes that may vote.
    #[serde(with = "known")]
    #[schemars(with = "known::Written<Voting>")]
    pub voting: Known<Voting>,
    /// Every copy of every shard.
    #[serde(with = "known")]
    #[schemars(with = "known::Written<ShardCopies>")]
    pub shards: Known<ShardCopies>,
    /// Names of the indices without replicas whose data is in a snapshot repository (searchable
    /// snapshots, also partially mounted ones).
    #[serde(with = "known")]
    #[schemars(with = "known::Written<BTreeSet<String>>")]
    pub searchable_snapshots: Known<BTreeSet<String>>,
    /// Names of the closed indices that the engine neither replicates nor moves; of which nodes have their
    /// data it says nothing. Known where the copies are.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub immovable: BTreeSet<String>,
    /// Allocation setting of the cluster.
    #[serde(with = "known")]
    #[schemars(with = "known::Written<Allocation>")]
    pub allocation: Known<Allocation>,
    /// Node-shutdown records, if the engine supports them.
    #[serde(with = "known")]
    #[schemars(with = "known::Written<Option<Vec<Record>>>")]
    pub records: Known<Option<Vec<Record>>>,
}

/// One node in the engine's list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Id of the node, which survives restarts.
    pub id: String,
    /// Name of the node.
    pub name: String,
    /// New with every process.
    pub ephemeral_id: String,
    /// Roles of the node, as the engine spells them; without any it only coordinates.
    pub roles: BTreeSet<String>,
    /// True if the node has not reported its roles and its version: it hangs, or has just joined. Then
    /// `roles` is empty, and it may have any.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub roles_unknown: bool,
    /// Value of its zone attribute.
    pub zone: Option<String>,
    /// Version of the node.
    pub version: String,
    /// The largest heap of its JVM, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_max: Option<u64>,
    /// The snapshot that is being taken of its shards; of several the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<RunningSnapshot>,
}

/// A snapshot of the engine that is being taken of shards on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunningSnapshot {
    /// `repository:snapshot`, for people.
    pub name: String,
    /// When it began, by the clock of the elected master.
    pub since: Time,
    /// How many shards on the node are not read yet.
    pub shards: u32,
}

impl Node {
    /// True if the node has the role `master` or `cluster_manager`, or may have it.
    pub fn is_master_eligible(&self) -> bool {
        self.roles_unknown || are_master_eligible(&self.roles)
    }

    /// True if the node can hold shards: data of a tier, or those of OpenSearch's `search` and `warm`
    /// nodes and of a stateless Elasticsearch's `index` nodes.
    pub fn holds_data(&self) -> bool {
        self.roles_unknown || hold_data(&self.roles)
    }
}

/// True if a node with these roles can be elected, or votes.
pub fn are_master_eligible(roles: &BTreeSet<String>) -> bool {
    roles.iter().any(|role| matches!(role.as_str(), "master" | "cluster_manager"))
}

/// True if a node with these roles can hold shards.
pub(crate) fn hold_data(roles: &BTreeSet<String>) -> bool {
    roles.iter().any(|role| holds_data(role))
}

/// True if a node with this role can hold shards.
pub fn holds_data(role: &str) -> bool {
    matches!(role, "data" | "search" | "warm" | "index") || role.starts_with("data_")
}

/// Color of a cluster's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Color {
    /// Every copy is assigned.
    Green,
    /// A replica is unassigned.
    Yellow,
    /// A primary is unassigned.
    Red,
    /// Any other value.
    Unknown,
}

/// The cluster's health.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Color of the health.
    pub color: Color,
    /// The engine did not finish its queued tasks in time.
    pub timed_out: bool,
    /// Nodes that can hold shards.
    pub data_nodes: u32,
    /// Copies that are being created.
    pub initializing: u32,
    /// Copies that are being moved.
    pub relocating: u32,
    /// Copies without a node.
    pub unassigned: u32,
    /// Unassigned copies that wait for their node to come back.
    pub delayed: u32,
    /// Requests for shard information that are not answered yet.
    pub in_flight_fetch: u32,
}

/// Ids of the nodes whose votes elect a master.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Voting {
    /// By voting configurations (Elasticsearch from 7, OpenSearch).
    Configurations {
        /// The last committed one.
        committed: BTreeSet<String>,
        /// The last accepted one.
        accepted: BTreeSet<String>,
        /// Names of the nodes that are excluded from voting.
        excluded: BTreeSet<String>,
    },
    /// By `discovery.zen.minimum_master_nodes` (Elasticsearch 6).
    MinimumMasterNodes(u32),
}

/// The cluster's allocation settings, and our marker beside them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Allocation {
    /// `cluster.routing.allocation.enable`; the transient value wins.
    pub setting: AllocationBefore,
    /// `cluster.metadata.stayput`, if its value can be parsed.
    pub marker: Option<Marker>,
    /// `cluster.routing.allocation.exclude._name`. While nodes leave, it is read before the shard copies.
    #[serde(default, skip_serializing_if = "AllocationBefore::is_unset")]
    pub excluded: AllocationBefore,
}

/// Our marker, written in the same request as the setting. It contains what is needed to undo it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Marker {
    /// The SearchCluster, as `namespace/name`: the marker of another one is not ours to undo.
    pub cluster: String,
    /// Id of the restart.
    pub restart: String,
    /// The setting before ours.
    pub before: AllocationBefore,
}

/// A node-shutdown record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Id of the node.
    pub node_id: String,
    /// True if the record is of the type `restart`.
    pub is_restart: bool,
    /// Reason of the record; in our records the SearchCluster and the id of the restart.
    pub reason: String,
    /// True if the engine has finished its preparation for the shutdown.
    pub complete: bool,
    /// Parts of the preparation that are not complete, as far as the engine says: `shard_migration`,
    /// `persistent_tasks`, `plugins`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preparing: Vec<String>,
}
