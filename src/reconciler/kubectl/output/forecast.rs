//! The forecast of a dry run, for programs.

use schemars::JsonSchema;
use serde::Serialize;

use crate::kubectl::ahead::Ahead;
use stayput_restart::{
    Basis, ForecastStep, ForecastStepKind, ForecastTime, Request, Time, Waiting,
};

/// What a restart comes to, if every node comes back and leaves the cluster as it is now.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::kubectl) struct ForecastOutput {
    /// When the cluster was looked at.
    #[schemars(with = "String")]
    seen: Time,
    /// `underWay`, `requested` (about to begin), or `hypothetical`: nobody has requested it.
    basis: &'static str,
    request: Request,
    /// What keeps the restart as a whole from going on; the steps follow once it is gone.
    blocked_by: Option<WaitingOutput>,
    /// In their order.
    steps: Vec<StepOutput>,
    /// Nodes that nothing is done for now.
    waiting: Vec<WaitingOutput>,
    /// Nodes that are not restarted unless something changes.
    never: Vec<WaitingOutput>,
}

/// Nodes that go together.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StepOutput {
    /// `restart`, `stop` or `start`.
    kind: &'static str,
    /// `underWay`, `now` or `later`.
    when: &'static str,
    nodes: Vec<NodeOutput>,
}

/// A node in a step.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NodeOutput {
    name: String,
    /// Why the node is in this step.
    message: String,
}

/// Why a node, or the cluster, waits.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WaitingOutput {
    /// Name of the node; none for the cluster as a whole.
    name: Option<String>,
    /// Why, for programs: the published name of a rule, or another code.
    code: &'static str,
    message: String,
}

impl ForecastOutput {
    pub(in crate::kubectl) fn of(ahead: &Ahead) -> Self {
        let forecast = &ahead.forecast;
        Self {
            seen: ahead.seen,
            basis: match forecast.basis {
                Basis::UnderWay => "underWay",
                Basis::Requested => "requested",
                Basis::Hypothetical => "hypothetical",
            },
            request: forecast.request.clone(),
            blocked_by: forecast.blocked_by.as_ref().map(WaitingOutput::of),
            steps: forecast.steps.iter().map(StepOutput::of).collect(),
            waiting: forecast.waiting.iter().map(WaitingOutput::of).collect(),
            never: forecast.never.iter().map(WaitingOutput::of).collect(),
        }
    }
}

impl StepOutput {
    fn of(step: &ForecastStep) -> Self {
        Self {
            kind: match step.kind {
                ForecastStepKind::Restart => "restart",
                ForecastStepKind::Stop => "stop",
                ForecastStepKind::Start => "start",
            },
            when: match step.when {
                ForecastTime::UnderWay => "underWay",
                ForecastTime::Now => "now",
                ForecastTime::Later => "later",
            },
            nodes: step
                .nodes
                .iter()
                .map(|node| NodeOutput { name: node.name.clone(), message: node.message.clone() })
                .collect(),
        }
    }
}

impl WaitingOutput {
    fn of(waiting: &Waiting) -> Self {
        let code = waiting.code.as_str();
        Self { name: waiting.node.clone(), code, message: waiting.message.clone() }
    }
}
