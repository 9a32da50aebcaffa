//! A request for one restart.

#![warn(missing_docs)]

use glob::Pattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::policy::why_not_skipped;
use crate::{Pod, Time};
use stayput_api::Span;

/// How a cluster is restarted.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Strategy {
    /// Each node as soon as a slot is free, whatever the cluster's health (phase `schedule`).
    Immediate,
    /// One node after the other, as the rules allow.
    #[default]
    Rolling,
    /// All nodes stopped, then all started: an outage.
    Coordinated,
}

impl Strategy {
    /// The name in the status, the history and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Immediate => "immediate",
            Self::Rolling => "rolling",
            Self::Coordinated => "coordinated",
        }
    }
}

/// The nodes to restart: those that match every given field; all nodes if none is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Names of nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// A role of the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Value of the zone attribute of the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

// Unknown fields are allowed, so that a ledger of a newer version can be read; [`Request::parse`] is strict.
/// One request, in the annotation [`super::annotation::REQUEST`] and in the ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Chosen by the client that makes the request; the same id twice is one request.
    pub id: String,
    /// How the nodes are restarted.
    #[serde(default)]
    pub strategy: Strategy,
    /// The nodes to restart.
    #[serde(default)]
    pub target: Target,
    /// No node is stopped before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// No further node is stopped later than this long after the restart was opened, or after `notBefore` if
    /// that is later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub deadline: Option<Span>,
    /// Patterns of indices without replicas that may be unavailable while their node restarts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_unreplicated: Vec<String>,
    /// A stop for this restart may cost the quorum, or the last copy of a shard.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_outage: bool,
    /// Nodes may be stopped outside of the maintenance windows, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside_windows: bool,
    /// Predicates that are not evaluated for this restart, by their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip_rules: Vec<String>,
    /// Who made the request, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl Target {
    /// The nodes of these pods, by name.
    pub(crate) fn of(pods: &[&Pod]) -> Self {
        let mut nodes: Vec<String> = pods.iter().map(|pod| pod.node.clone()).collect();
        nodes.sort();
        Self { nodes, ..Self::default() }
    }

    /// True if the engine must be read to find these nodes.
    pub const fn is_by_engine(&self) -> bool {
        self.role.is_some() || self.zone.is_some()
    }
}

/// Fields of a [`Request`] as people write it.
const FIELDS: [&str; 10] = [
    "id",
    "strategy",
    "target",
    "notBefore",
    "deadline",
    "allowUnreplicated",
    "allowOutage",
    "outsideWindows",
    "skipRules",
    "by",
];
/// Fields of a [`Target`] as people write it.
const TARGET_FIELDS: [&str; 3] = ["nodes", "role", "zone"];

/// Refuses a field that does not exist, because one with a typo would add nodes to the restart; and a list,
/// which serde takes for an object, and in which no field has a name.
fn check_fields(text: &str) -> Result<(), serde_json::Error> {
    let written: Map<String, Value> = serde_json::from_str(text)?;
    let target = match written.get("target") {
        None | Some(Value::Null) => Map::new(),
        Some(target) => Map::deserialize(target)?,
    };
    for (object, known) in [(&written, &FIELDS[..]), (&target, &TARGET_FIELDS)] {
        let mut names = object.keys();
        if let Some(unknown) = names.find(|name| !known.contains(&name.as_str())) {
            return Err(de::Error::unknown_field(unknown, known));
        }
    }
    Ok(())
}

/// The longest id: it becomes part of annotations, reasons and logs.
const MAX_ID: usize = 63;

impl Request {
    /// True if the request lifts no rule and sets no time, like a phase on a pod.
    pub(crate) const fn is_plain(&self) -> bool {
        let Self {
            id: _,
            strategy: _,
            target: _,
            not_before,
            deadline,
            allow_unreplicated,
            allow_outage,
            outside_windows,
            skip_rules,
            by: _,
        } = self;
        not_before.is_none()
            && deadline.is_none()
            && allow_unreplicated.is_empty()
            && !*allow_outage
            && !*outside_windows
            && skip_rules.is_empty()
    }

    /// True if the nodes are stopped together or not at all: those of a zone.
    pub fn goes_as_a_whole(&self) -> bool {
        self.strategy == Strategy::Rolling && self.target.zone.is_some()
    }

    /// Reads the annotation's value.
    ///
    /// # Errors
    /// The value is not a valid request.
    pub fn parse(text: &str) -> Result<Self, InvalidRequest> {
        check_fields(text).map_err(InvalidRequest::Json)?;
        let request: Self = serde_json::from_str(text).map_err(InvalidRequest::Json)?;
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if request.id.is_empty() || request.id.len() > MAX_ID || !request.id.bytes().all(is_allowed)
        {
            return Err(InvalidRequest::Id(request.id));
        }
        for pattern in &request.allow_unreplicated {
            let invalid = |why| InvalidRequest::Pattern { pattern: pattern.clone(), why };
            if pattern.is_empty() {
                return Err(invalid(None));
            }
            Pattern::new(pattern).map_err(|error| invalid(Some(error)))?;
        }
        for name in &request.skip_rules {
            if let Some(why) = why_not_skipped(name) {
                return Err(InvalidRequest::Rule { name: name.clone(), why });
            }
        }
        Ok(request)
    }
}

/// Why a text is not a [`Request`], and what to write.
#[derive(Debug, Error)]
pub enum InvalidRequest {
    /// The text is not JSON, or not of the right form.
    #[error(
        "the restart request is not a valid JSON object: {0}; write for example \
         {{\"id\":\"2026-11-21-a\",\"strategy\":\"rolling\"}}"
    )]
    Json(#[source] serde_json::Error),
    /// The id is empty, too long or has other characters.
    #[error("{0:?} is not a valid restart id: use 1 to {MAX_ID} letters, digits, '-', '.' and '_'")]
    Id(String),
    /// A pattern of indices is empty or malformed.
    #[error(
        "{pattern:?} in allowUnreplicated is not a pattern of index names: write a name, or one with \
         '*' such as \"logs-*\""
    )]
    Pattern {
        /// The pattern, as it is written.
        pattern: String,
        /// Error in the pattern, unless it is empty.
        #[source]
        why: Option<glob::PatternError>,
    },
    /// A rule that does not exist, or that protects data.
    #[error("{name:?} in skipRules {why}")]
    Rule {
        /// Name of the rule, as it is written.
        name: String,
        /// Why the rule is not skipped, and what to write.
        why: String,
    },
}

/// Value of the annotation [`super::annotation::PHASE`]; without it there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// To be restarted as soon as a slot is free.
    Schedule,
    /// To be restarted when the rules allow it.
    ScheduleRolling,
    /// To be restarted together with all other nodes.
    ScheduleCoordinated,
    /// Being stopped.
    Stop,
    /// Being stopped together with all other nodes.
    StopCoordinated,
    /// Being started.
    Start,
    /// Being started together with all other nodes.
    StartCoordinated,
}

/// A value that is not a phase.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{0:?} is not a restart phase: write schedule, schedule-rolling or schedule-coordinated to ask \
     for a restart, or remove the annotation"
)]
pub struct UnknownPhase(pub String);

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 7] = [
        Self::Schedule,
        Self::ScheduleRolling,
        Self::ScheduleCoordinated,
        Self::Stop,
        Self::StopCoordinated,
        Self::Start,
        Self::StartCoordinated,
    ];

    /// The value of the annotation.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::ScheduleRolling => "schedule-rolling",
            Self::ScheduleCoordinated => "schedule-coordinated",
            Self::Stop => "stop",
            Self::StopCoordinated => "stop-coordinated",
            Self::Start => "start",
            Self::StartCoordinated => "start-coordinated",
        }
    }

    /// # Errors
    /// The text is not one of the seven phases.
    pub fn parse(text: &str) -> Result<Self, UnknownPhase> {
        Self::ALL
            .into_iter()
            .find(|phase| phase.as_str() == text)
            .ok_or_else(|| UnknownPhase(text.to_owned()))
    }

    /// The strategy that a person requests with this value. `stop` on an idle pod is read as
    /// `schedule`, so that it takes a slot and obeys the rules; `start` asks for nothing.
    pub const fn asks_for(self) -> Option<Strategy> {
        match self {
            Self::Schedule | Self::Stop => Some(Strategy::Immediate),
            Self::ScheduleRolling => Some(Strategy::Rolling),
            Self::ScheduleCoordinated | Self::StopCoordinated => Some(Strategy::Coordinated),
            Self::Start | Self::StartCoordinated => None,
        }
    }

    /// True if the restart of the pod has not begun.
    pub const fn is_scheduled(self) -> bool {
        match self {
            Self::Schedule | Self::ScheduleRolling | Self::ScheduleCoordinated => true,
            Self::Stop | Self::StopCoordinated | Self::Start | Self::StartCoordinated => false,
        }
    }

    /// The phase of a waiting pod in a restart with this strategy.
    pub const fn scheduled(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Immediate => Self::Schedule,
            Strategy::Rolling => Self::ScheduleRolling,
            Strategy::Coordinated => Self::ScheduleCoordinated,
        }
    }

    /// The phase of a stopping pod in a restart with this strategy.
    pub const fn stop(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Immediate | Strategy::Rolling => Self::Stop,
            Strategy::Coordinated => Self::StopCoordinated,
        }
    }

    /// The phase of a starting pod in a restart with this strategy.
    pub const fn start(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Immediate | Strategy::Rolling => Self::Start,
            Strategy::Coordinated => Self::StartCoordinated,
        }
    }
}
