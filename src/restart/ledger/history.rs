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

    /// Name of the outcome in status, history, events and metrics.
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
    /// When the first node got its slot; absent if the restart ended before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub began: Option<Time>,
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
    /// True if the request allowed stops that cost the quorum, or the last copy of a shard.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allowed_outage: bool,
}

impl HistoryEntry {
    /// True if nodes may have been stopped for the restart, and no other restart went on with them.
    /// Entries of earlier versions lack the time at which the first node got its slot.
    pub fn is_to_be_checked(&self) -> bool {
        let may_have_stopped = self.began.is_some() || self.nodes > 0;
        may_have_stopped && self.outcome != Outcome::Superseded
    }
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
    /// The result that the pod is to show.
    pub last: LastRestart,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, began: Option<u64>, nodes: u32, outcome: Outcome) -> HistoryEntry {
        HistoryEntry {
            id: id.to_owned(),
            strategy: Strategy::Rolling,
            outcome,
            reason: String::new(),
            started: Time(0),
            began: began.map(Time),
            seconds: 0,
            nodes,
            steps: BTreeMap::new(),
            skipped_rules: Vec::new(),
            allowed_outage: false,
        }
    }

    #[test] // proves UPDATE-52
    fn what_was_never_begun_or_goes_on_is_not_to_be_checked() {
        for (what, entry, counts) in [
            ("done", entry("a", Some(1), 3, Outcome::Done), true),
            ("its first node failed", entry("a", Some(1), 0, Outcome::RolledBack), true),
            ("given up in the middle", entry("a", Some(1), 1, Outcome::Aborted), true),
            ("by an earlier version", entry("a", None, 3, Outcome::Done), true),
            ("cancelled while it waited", entry("a", None, 0, Outcome::Aborted), false),
            ("replaced in the queue", entry("a", None, 0, Outcome::Superseded), false),
            ("another one goes on with it", entry("a", Some(1), 2, Outcome::Superseded), false),
        ] {
            assert_eq!(entry.is_to_be_checked(), counts, "{what}");
        }
        let history = vec![
            entry("a", Some(1), 3, Outcome::Done),
            entry("b", Some(2), 0, Outcome::Aborted),
            entry("c", None, 0, Outcome::Aborted),
        ];
        let ledger = crate::Ledger { history, ..crate::Ledger::default() };
        assert_eq!(ledger.last_to_check().map(|entry| entry.id.as_str()), Some("b"));
        assert_eq!(crate::Ledger::default().last_to_check(), None);
    }
}
