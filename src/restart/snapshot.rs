//! Input of one decision: read together, possibly stale, possibly partial. A part that could not be read
//! is [`Unknown`] with the reason, never a guess.

#![warn(missing_docs)]

mod cluster;
mod engine;
mod known;
mod manager;
mod operator;
mod pod;
mod saved;
mod shard_copies;
mod update;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{KnownConfigs, Ledger, Time};

pub use cluster::Cluster;
pub(crate) use cluster::namespace_and_name;
pub(crate) use engine::hold_data;
pub use engine::{
    Allocation, Color, Engine, Health, Marker, Node, Record, RunningSnapshot, Voting,
};
pub use engine::{are_master_eligible, holds_data};
pub use manager::{LastExit, LastRequest, Manager, Run};
pub use operator::{Operator, OperatorKind};
pub use pod::{Endpoint, MissingPod, NotStarted, Pod, Sources, exec_manager};
pub use saved::schema as snapshot_schema;
pub use saved::{InvalidSnapshot, Saved};
pub(crate) use shard_copies::{NumberedCopy, Others};
pub use shard_copies::{ShardCopies, ShardCopy};
pub use update::{ContainerWaiting, DataPlace, LivePod, OtherContainer, ResizeState, Unreturnable};

/// Why a value is not known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unknown {
    /// The part that could not be read, and why, for people.
    pub message: String,
}

/// A value, or the reason why it could not be read.
pub type Known<T> = Result<T, Unknown>;

const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The state of a cluster at one time.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// When it was read.
    #[schemars(with = "String")]
    pub now: Time,
    /// By how many milliseconds the clock has jumped forward since the look before; the times of the ledger were not
    /// moved with it yet.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jumped: u64,
    /// A random id, used if a restart without a request begins now.
    pub fresh_id: String,
    /// The SearchCluster object.
    pub cluster: Cluster,
    /// Status of the SearchCluster, as far as decisions need it.
    pub ledger: Ledger,
    /// The pods its selector matches, in any order.
    pub pods: Vec<Pod>,
    /// The pods that StatefulSets want and that are not there, although there was time to make them. No
    /// decision depends on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingPod>,
    /// Settings of the configs that the sources have now.
    #[serde(default, skip_serializing_if = "KnownConfigs::is_empty")]
    pub configs: KnownConfigs,
    /// State of the engine; not read while nothing depends on it ([`super::reads_engine`]).
    #[serde(with = "known")]
    #[schemars(with = "known::Written<Engine>")]
    pub engine: Known<Engine>,
    /// The engine is not known, since it answers that it has no elected master.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_master: bool,
    /// Names of the nodes for whose coming stop the cluster was flushed. Lost when the controller
    /// restarts; then the flush is repeated.
    pub flushed: BTreeSet<String>,
}
