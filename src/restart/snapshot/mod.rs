//! All that one decision is made from: read together, possibly stale, possibly partial. What could
//! not be read is [`Unknown`] with the reason, never a guess.

mod cluster;
mod engine;
mod known;
mod manager;
mod pod;
mod saved;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ledger, Time};

pub use cluster::Cluster;
pub use engine::{Allocation, Color, Engine, Health, Marker, Node, Record, ShardCopy, Voting};
pub use manager::{LastExit, LastRequest, Manager, Run};
pub use pod::{Pod, Sources};
pub use saved::Saved;
pub use saved::schema as snapshot_schema;

/// Why something is not known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unknown {
    /// What is wrong, and with what, in a sentence.
    pub message: String,
}

/// What was read, or why it was not.
pub type Known<T> = Result<T, Unknown>;

/// One look at everything.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// When the look was taken.
    #[schemars(with = "String")]
    pub now: Time,
    /// A random id, used if this pass begins a restart that brings none.
    pub fresh_id: String,
    /// The SearchCluster object.
    pub cluster: Cluster,
    /// Its status, as far as decisions need it.
    pub ledger: Ledger,
    /// The pods its selector finds, in any order.
    pub pods: Vec<Pod>,
    /// The engine's own view; not read while nothing depends on it ([`super::reads`]).
    #[serde(with = "known")]
    #[schemars(with = "known::Written<Engine>")]
    pub engine: Known<Engine>,
    /// Names of the nodes whose cluster was flushed for their coming stop; forgotten when the
    /// controller restarts, and then the flush is done once more.
    pub flushed: BTreeSet<String>,
}
