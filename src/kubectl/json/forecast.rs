//! The JSON of a dry run.

use schemars::JsonSchema;
use serde::Serialize;

use crate::forecast::DatedForecast;
use stayput_restart::{
    Basis, ForecastNode, ForecastStep, ForecastStepKind, ForecastTime, Request, Time, Waiting,
};

/// The steps of a restart, assuming that every node comes back and nothing else in the cluster
/// changes.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForecastOutput {
    /// When the cluster was observed.
    #[schemars(with = "String")]
    observed_at: Time,
    /// Where the request comes from.
    basis: BasisOutput,
    request: Request,
    /// The rule or fault that blocks the restart as a whole; the steps are those that follow once it
    /// is resolved.
    blocker: Option<WaitingOutput>,
    /// In their order.
    steps: Vec<StepOutput>,
    /// Nodes for which nothing begins now, with what they wait for.
    waiting: Vec<WaitingOutput>,
    /// Nodes blocked by what passes by itself, with the first rule that blocks each.
    not_yet: Vec<WaitingOutput>,
    /// Nodes that are not restarted unless somebody changes something, with the first rule that blocks
    /// each.
    never: Vec<WaitingOutput>,
    /// Nodes whose pods lack something of their templates that none of the steps carries out.
    other_updates: Vec<StepNodeOutput>,
}

/// Where the request comes from.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum BasisOutput {
    /// The restart of the request is under way.
    UnderWay,
    /// The restart of the request is about to begin.
    Requested,
    /// No restart was requested: the dry run shows what it would do.
    Hypothetical,
}

/// Nodes that are restarted, stopped or started together.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StepOutput {
    kind: StepKindOutput,
    when: WhenOutput,
    nodes: Vec<StepNodeOutput>,
}

/// The work on the nodes of a step.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum StepKindOutput {
    /// Each is stopped and started.
    Restart,
    /// All are stopped.
    Stop,
    /// All are started.
    Start,
}

/// When it is done.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum WhenOutput {
    /// The step has begun.
    UnderWay,
    /// At once.
    Now,
    /// After the steps before it, and when nothing blocks the restart.
    Later,
}

/// One node of a step, or one that is in none.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StepNodeOutput {
    name: String,
    /// Why it is in this step, or what becomes of its update, for people.
    message: String,
    /// How it is brought to what is wanted: `relabel`, `restart`, `container`, `resize` or `replace`.
    step: &'static str,
    /// The fields of its pod template that need this step, with their values; the first few.
    because: Vec<String>,
}

/// A node, or the cluster as a whole, and the reason why it waits.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WaitingOutput {
    /// Name of the node; none for the cluster as a whole.
    node: Option<String>,
    /// The published name of the rule, or another code.
    code: &'static str,
    /// The reason, for people.
    message: String,
}

impl ForecastOutput {
    pub(crate) fn new(dated: &DatedForecast) -> Self {
        let DatedForecast { observed_at, forecast } = dated;
        Self {
            observed_at: *observed_at,
            basis: match forecast.basis {
                Basis::UnderWay => BasisOutput::UnderWay,
                Basis::Requested => BasisOutput::Requested,
                Basis::Hypothetical => BasisOutput::Hypothetical,
            },
            request: forecast.request.clone(),
            blocker: forecast.blocked_by.as_ref().map(WaitingOutput::new),
            steps: forecast.steps.iter().map(StepOutput::new).collect(),
            waiting: forecast.waiting.iter().map(WaitingOutput::new).collect(),
            not_yet: forecast.not_yet.iter().map(WaitingOutput::new).collect(),
            never: forecast.never.iter().map(WaitingOutput::new).collect(),
            other_updates: forecast.other_updates.iter().map(StepNodeOutput::new).collect(),
        }
    }
}

impl StepOutput {
    fn new(step: &ForecastStep) -> Self {
        Self {
            kind: match step.kind {
                ForecastStepKind::Restart => StepKindOutput::Restart,
                ForecastStepKind::Stop => StepKindOutput::Stop,
                ForecastStepKind::Start => StepKindOutput::Start,
            },
            when: match step.when {
                ForecastTime::UnderWay => WhenOutput::UnderWay,
                ForecastTime::Now => WhenOutput::Now,
                ForecastTime::Later => WhenOutput::Later,
            },
            nodes: step.nodes.iter().map(StepNodeOutput::new).collect(),
        }
    }
}

impl StepNodeOutput {
    fn new(node: &ForecastNode) -> Self {
        Self {
            name: node.name.clone(),
            message: node.message.clone(),
            step: node.step.name(),
            because: node.because.clone(),
        }
    }
}

impl WaitingOutput {
    fn new(waiting: &Waiting) -> Self {
        let code = waiting.code.as_str();
        Self { node: waiting.node.clone(), code, message: waiting.message.to_string() }
    }
}
