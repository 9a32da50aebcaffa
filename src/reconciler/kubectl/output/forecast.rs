//! A dry run, for programs.

use schemars::JsonSchema;
use serde::Serialize;

use crate::kubectl::ahead::Ahead;
use stayput_restart::{Basis, Request, Stage, StageKind, Time, Waiting, When};

/// What a restart comes to, if every node comes back and leaves the cluster as it is now.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::kubectl) struct ForecastOutput {
    /// When the cluster was looked at.
    #[schemars(with = "String")]
    seen: Time,
    /// `underWay`, `asked` (about to begin), or `supposed`: nobody has asked.
    basis: &'static str,
    request: Request,
    /// What keeps the restart as a whole from going on; the steps are as if it were lifted.
    held: Option<RuleOutput>,
    /// In their order.
    steps: Vec<StepOutput>,
    /// Every node nothing is begun for now.
    waiting: Vec<RuleOutput>,
    /// Nodes that never get a turn unless something changes.
    never: Vec<RuleOutput>,
}

/// Nodes that go together.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StepOutput {
    /// `restart`, `stop` or `start`.
    kind: &'static str,
    /// `underWay`, `now` or `later`.
    when: &'static str,
    nodes: Vec<TurnOutput>,
}

/// One of them.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TurnOutput {
    name: String,
    why: String,
}

/// What keeps a node from going.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RuleOutput {
    /// Name of the node; none for the cluster as a whole.
    name: Option<String>,
    /// The rule's published name, or another word for why.
    rule: &'static str,
    message: String,
}

impl ForecastOutput {
    pub(in crate::kubectl) fn of(ahead: &Ahead) -> Self {
        let forecast = &ahead.forecast;
        Self {
            seen: ahead.seen,
            basis: match forecast.basis {
                Basis::UnderWay => "underWay",
                Basis::Asked => "asked",
                Basis::Supposed => "supposed",
            },
            request: forecast.request.clone(),
            held: forecast.held.as_ref().map(RuleOutput::of),
            steps: forecast.steps.iter().map(StepOutput::of).collect(),
            waiting: forecast.waiting.iter().map(RuleOutput::of).collect(),
            never: forecast.never.iter().map(RuleOutput::of).collect(),
        }
    }
}

impl StepOutput {
    fn of(stage: &Stage) -> Self {
        let turns = stage.turns.iter();
        Self {
            kind: match stage.kind {
                StageKind::Restart => "restart",
                StageKind::Stop => "stop",
                StageKind::Start => "start",
            },
            when: match stage.when {
                When::UnderWay => "underWay",
                When::Now => "now",
                When::Later => "later",
            },
            nodes: turns
                .map(|turn| TurnOutput { name: turn.node.clone(), why: turn.why.clone() })
                .collect(),
        }
    }
}

impl RuleOutput {
    fn of(waiting: &Waiting) -> Self {
        let rule = waiting.code.as_str();
        Self { name: waiting.node.clone(), rule, message: waiting.message.clone() }
    }
}
