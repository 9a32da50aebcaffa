//! What was asked for: one restart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;
use stayput_api::Span;

/// How a cluster is restarted.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Strategy {
    /// Each node as soon as there is a slot, whatever the cluster's health (phase `schedule`).
    Immediate,
    /// One node after the other, by the rules.
    #[default]
    Rolling,
    /// All nodes stopped, then all started: an outage.
    Coordinated,
}

impl Strategy {
    /// The name, as it stands in status, history and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Immediate => "immediate",
            Self::Rolling => "rolling",
            Self::Coordinated => "coordinated",
        }
    }
}

/// Which nodes; empty means all. What is given must all hold.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Names of nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// A role every one of them has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Value of the zone attribute every one of them has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

// A newer version's fields must not keep a ledger from being read: [`Asked`] is strict, this is not.
/// One request, as it stands in the annotation [`super::annotation::REQUEST`] and in the ledger.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Chosen by whoever asks; the same id twice is one request.
    pub id: String,
    /// How.
    #[serde(default)]
    pub strategy: Strategy,
    /// Which nodes.
    #[serde(default)]
    pub target: Target,
    /// No node is stopped earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub not_before: Option<Time>,
    /// No further node is stopped later than this long after the request was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub deadline: Option<Span>,
    /// Who asked, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl Target {
    /// Whether only the engine can tell which nodes these are.
    pub const fn is_by_engine(&self) -> bool {
        self.role.is_some() || self.zone.is_some()
    }
}

/// [`Target`] as people write it: a field with a typo must not widen what is restarted.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AskedTarget {
    #[serde(default)]
    nodes: Vec<String>,
    role: Option<String>,
    zone: Option<String>,
}

/// [`Request`] as people write it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Asked {
    id: String,
    #[serde(default)]
    strategy: Strategy,
    #[serde(default)]
    target: AskedTarget,
    not_before: Option<Time>,
    deadline: Option<Span>,
    by: Option<String>,
}

impl From<Asked> for Request {
    fn from(asked: Asked) -> Self {
        let Asked { id, strategy, target, not_before, deadline, by } = asked;
        let AskedTarget { nodes, role, zone } = target;
        let target = Target { nodes, role, zone };
        Self { id, strategy, target, not_before, deadline, by }
    }
}

/// The longest id: it becomes part of annotations, reasons and logs.
const MAX_ID: usize = 63;

impl Request {
    /// Whether its nodes go together or not at all: a whole zone.
    pub fn is_at_once(&self) -> bool {
        self.strategy == Strategy::Rolling && self.target.zone.is_some()
    }

    /// Reads the annotation's value.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        let asked: Asked = serde_json::from_str(text).map_err(|error| {
            format!(
                "the restart request is not the JSON object this takes: {error}; write for \
                 example {{\"id\":\"2026-11-21-a\",\"strategy\":\"rolling\"}}"
            )
        })?;
        let request = Self::from(asked);
        let fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if request.id.is_empty() || request.id.len() > MAX_ID || !request.id.bytes().all(fit) {
            return Err(format!(
                "{:?} is no id of a restart: use 1 to {MAX_ID} letters, digits, '-', '.' and '_'",
                request.id
            ));
        }
        Ok(request)
    }
}
