//! Restarts that have ended.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Strategy, Time};

/// How a restart ended.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// Every node runs in a new process on the config expected, proven.
    Done,
    /// Given up; engines we stopped were started again.
    Aborted,
    /// The new config did not come up; the last good one was put back.
    RolledBack,
    /// Another client sent a manager a request in the middle.
    Interfered,
    /// Another request took its place.
    Superseded,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 5] =
        [Self::Done, Self::Aborted, Self::RolledBack, Self::Interfered, Self::Superseded];

    /// Its name in status, history, events and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Aborted => "aborted",
            Self::RolledBack => "rolledBack",
            Self::Interfered => "interfered",
            Self::Superseded => "superseded",
        }
    }
}

/// One restart that is over.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Id of the request.
    pub id: String,
    /// How the nodes were restarted.
    pub strategy: Strategy,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it ended so, in a sentence; empty if `done` needs no explanation.
    #[serde(default)]
    pub reason: String,
    /// When it was accepted.
    #[schemars(with = "String")]
    pub started: Time,
    /// How long it took, in seconds.
    pub seconds: u64,
    /// How many nodes were restarted.
    pub nodes: u32,
    /// How many of them by each step: `{"container": 3}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<String, u32>,
    /// Predicates that were not evaluated for it because its request said so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped_rules: Vec<String>,
    /// Its request allowed stops that cost the quorum, or the last copy of a shard.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allowed_outage: bool,
}

/// How a pod's last restart ended: value of the annotation `stayput.dev/last-restart`.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct LastRestart {
    /// Id of the request.
    pub id: String,
    /// How it ended for this pod.
    pub outcome: Outcome,
    /// Why, in a sentence; empty if `done` needs no explanation.
    #[serde(default)]
    pub reason: String,
    /// When this pod's turn began.
    #[schemars(with = "String")]
    pub started: Time,
    /// How long it took, in seconds.
    pub seconds: u64,
}

/// The result of one node that its pod may not show yet.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct NodeResult {
    /// Uid of the pod.
    pub pod_uid: String,
    /// What it is to show.
    pub last: LastRestart,
}
