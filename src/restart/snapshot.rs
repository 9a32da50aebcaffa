//! Input of one decision: read together, possibly stale, possibly partial. A part that could not be read
//! is [`Unknown`] with the reason, never a guess.

#![warn(missing_docs)]

mod engine;
mod known;
mod manager;
mod node_sets;
mod operator;
mod pod;
mod shard_copies;
pub(crate) mod variables;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{KnownConfigs, Ledger, Policy, Time, annotation};

pub(crate) use engine::hold_data;
pub use engine::{
    Allocation, Color, Engine, Health, Marker, Node, Record, RunningSnapshot, Voting,
    are_master_eligible, holds_data,
};
pub use manager::{LastExit, LastRequest, Manager, Run};
pub use node_sets::{LeavingShards, NodeSet, NodeSets};
pub(crate) use operator::Replacement;
pub use operator::{
    Operator, OperatorFacts, OperatorKind, OperatorObject, OperatorState, set_eck_budget,
};
pub use pod::{
    ContainerWaiting, DataPlace, LabelAhead, LivePod, OtherContainer, ResizeState, Unreturnable,
};
pub use pod::{Endpoint, MissingPod, NotStarted, Pod, Sources, exec_manager};
pub(crate) use shard_copies::{NumberedCopy, Others};
pub use shard_copies::{ShardCopies, ShardCopy};

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// When it was read.
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
    /// The node sets of a declared cluster, if nodes leave it or something is owed for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_sets: Option<NodeSets>,
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

/// The SearchCluster, as far as decisions need it, beside its policy and its ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// `namespace/name`, for messages.
    pub name: String,
    /// True if the SearchCluster is being deleted: debts are paid, no restart begins.
    pub deleting: bool,
    /// Our finalizer is on it.
    pub finalizer: bool,
    /// True if the SearchCluster has a status; without one, an existing request is adopted and not
    /// carried out.
    pub has_status: bool,
    /// Our annotations on it.
    pub annotations: BTreeMap<String, String>,
    /// Who applies the phase on it as part of a configuration, for people; absent if a client only wrote
    /// it. Who applies it writes it again whenever it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_applied_by: Option<String>,
    /// `spec.paused`: no new stops.
    pub paused: bool,
    /// When the next of `spec.restart.windows` opens; none while one is open, and without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_until: Option<Time>,
    /// `spec.stopped`: names of nodes to be kept stopped.
    pub stopped: BTreeSet<String>,
    /// Other SearchClusters whose selectors match our pods; no node is stopped meanwhile.
    pub overlaps: Vec<String>,
    /// Uids of pods that are owed something and are there, although `spec.pods.selector` matches no pod.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unselected: BTreeSet<String>,
    /// The objects that operators make the pods from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operator_objects: Vec<OperatorObject>,
}

/// Namespace and name of a SearchCluster `<namespace>/<name>`, for commands.
pub(crate) fn namespace_and_name(cluster: &str) -> (&str, &str) {
    cluster.split_once('/').unwrap_or(("default", cluster))
}

/// Splits a pod name into set and ordinal: `logs-data-10` is number 10 of `logs-data`. A name without a
/// number is a set of its own.
pub(crate) fn set_and_ordinal(name: &str) -> (&str, Option<u64>) {
    match name.rsplit_once('-') {
        Some((set, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().map_or((name, None), |ordinal| (set, Some(ordinal)))
        }
        Some(_) | None => (name, None),
    }
}

impl Cluster {
    /// The gates of a kind that are closed for this restart, by name, with their values. `kind` is the
    /// prefix of their keys.
    pub(crate) fn closed_gates(
        &self,
        kind: &str,
        restart: &str,
    ) -> impl Iterator<Item = (&str, &str)> {
        let gates = self.annotations.iter();
        gates
            .filter_map(move |(key, value)| Some((key.strip_prefix(kind)?, value.as_str())))
            .filter(move |(_, value)| *value != restart)
    }

    /// True if the spec or an annotation requests that the node of this pod is kept stopped.
    pub(crate) fn keeps_stopped(&self, pod: &Pod) -> bool {
        self.stopped.contains(&pod.node) || annotation::keeps_stopped(&pod.annotations)
    }
}

/// Version of the format; any other version is refused.
const FORMAT: u32 = 1;

/// A snapshot and the policy that goes with it. Neither contains anything secret: no value of a Secret
/// or of a variable and no credentials, and of the annotations of pods only our own. The Secrets and ConfigMaps that the
/// config is made from, and those whose change asks for a restart, are named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Saved {
    /// Version of the format: 1.
    format: u32,
    /// Version of the program that took it.
    stayput: String,
    /// `spec.restart` of the SearchCluster, validated.
    pub policy: Policy,
    /// Input of the decision.
    pub snapshot: Snapshot,
}

/// The fields of every format.
#[derive(Deserialize)]
struct Head {
    format: u32,
    #[serde(default)]
    stayput: String,
}

impl Saved {
    /// A snapshot taken by this program.
    pub fn new(snapshot: Snapshot, policy: Policy) -> Self {
        let stayput = env!("CARGO_PKG_VERSION").to_owned();
        Self { format: FORMAT, stayput, policy, snapshot: snapshot.without_values() }
    }

    /// Version of the program that took the snapshot.
    pub fn version(&self) -> &str {
        &self.stayput
    }

    /// Reads a snapshot from JSON.
    ///
    /// # Errors
    /// The text is not a snapshot of this format.
    pub fn parse(text: &str) -> Result<Self, InvalidSnapshot> {
        let head: Head = serde_json::from_str(text).map_err(InvalidSnapshot::NotASnapshot)?;
        let Head { format, stayput } = head;
        if format != FORMAT {
            return Err(InvalidSnapshot::OtherFormat { format, stayput });
        }
        serde_json::from_str(text).map_err(|error| InvalidSnapshot::Damaged { stayput, error })
    }
}

/// Why a text is not a snapshot, and what to do.
#[derive(Debug, Error)]
pub enum InvalidSnapshot {
    /// The text is not JSON, or has no format.
    #[error(
        "this is not a snapshot: {0}; take one with `kubectl stayput snapshot CLUSTER --file FILE`"
    )]
    NotASnapshot(#[source] serde_json::Error),
    /// Another version has written the snapshot.
    #[error(
        "the snapshot has format {format}, taken by stayput {stayput:?}, and this is stayput {}, \
         which reads format {FORMAT}: use kubectl-stayput of that version",
        env!("CARGO_PKG_VERSION")
    )]
    OtherFormat {
        /// Format of the snapshot.
        format: u32,
        /// Version of the program that took the snapshot.
        stayput: String,
    },
    /// A field is missing or wrong.
    #[error("the snapshot, taken by stayput {stayput:?}, is damaged: {error}; take a new one")]
    Damaged {
        /// Version of the program that took the snapshot.
        stayput: String,
        /// The error of the parser.
        #[source]
        error: serde_json::Error,
    },
}

/// The JSON schema of the file.
pub fn snapshot_schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Saved).to_value();
    schema["title"] = "A snapshot of kubectl stayput snapshot".into();
    schema
}
