//! What programs read (`--output json`): `proto/kubectl-stayput.schema.json` is made from these types.
//! Fields are added, never renamed or taken away.

mod forecast;

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Value, json};

use super::ahead::Ahead;
use super::progress::Line;
use super::view::{Pod, View};
use forecast::ForecastOutput;
use stayput_restart::{
    Condition, Counts, HistoryEntry, LastRestart, Request, Restart, Step, Strategy, Time,
};

/// `status`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusOutput {
    cluster: String,
    namespace: String,
    /// The reconciler has looked at it; if not, everything it tells is missing here.
    seen: bool,
    phase: String,
    /// The rule or fault that keeps it from going on.
    blocked: Option<String>,
    message: Option<String>,
    /// How much longer the restart takes, by the pace of its nodes that are done.
    estimate: Option<String>,
    paused: bool,
    counts: Counts,
    /// Nodes that are in a phase, blocked, stopped or on another config than their sources have.
    nodes: Vec<NodeOutput>,
    /// The restart under way.
    restart: Option<RestartOutput>,
    /// The request that waits for it to end.
    queued: Option<Request>,
    /// The request that is not taken up yet.
    requested: Option<Request>,
    conditions: Vec<Condition>,
    /// The restart that ended last.
    last: Option<HistoryEntry>,
}

/// A restart under way.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RestartOutput {
    request: Request,
    #[schemars(with = "String")]
    started: Time,
    /// Nodes that are part of it.
    nodes: usize,
    /// Those of them that are done.
    done: usize,
    /// How it will end, once no further node is stopped.
    ending: Option<String>,
}

/// `why`, and each node of `status` and `plan`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeOutput {
    name: String,
    pod: Option<String>,
    pod_uid: Option<String>,
    ready: Option<bool>,
    /// Its phase, as the pod shows it.
    phase: Option<String>,
    /// It is to be kept stopped.
    kept_stopped: bool,
    /// What its engine is.
    state: Option<String>,
    /// Start of the checksum of the config it runs on.
    checksum: Option<String>,
    /// The rule that keeps it waiting.
    blocked_by: Option<String>,
    message: Option<String>,
    last_restart: Option<LastRestart>,
}

/// `plan`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlanOutput {
    cluster: String,
    namespace: String,
    blocked: Option<String>,
    message: Option<String>,
    restart: Option<RestartOutput>,
    /// Nodes that are being restarted or brought back.
    now: Vec<NodeOutput>,
    /// Nodes whose turn has not come, in the order in which it will as far as that is known.
    waiting: Vec<NodeOutput>,
    queued: Option<Request>,
    requested: Option<Request>,
    /// A dry run; none if the reconciler could not be asked.
    forecast: Option<ForecastOutput>,
}

/// `history`: the latest last.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct HistoryOutput {
    cluster: String,
    namespace: String,
    history: Vec<HistoryEntry>,
}

/// `restart`, `cancel`, `stop` and `start`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ActOutput {
    pub(super) cluster: String,
    pub(super) namespace: String,
    /// What was done.
    pub(super) done: Done,
    /// Id of the restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) strategy: Option<Strategy>,
    /// The nodes concerned, for a restart's dry run in its order as far as that is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) nodes: Vec<String>,
}

/// What was done.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum Done {
    /// The restart was asked for.
    Requested,
    /// It had been asked for before.
    AlreadyRequested,
    /// The cancel was asked for.
    CancelRequested,
    /// The request was withdrawn before anybody took it up.
    Withdrawn,
    /// The nodes are marked to be kept stopped.
    Stopped,
    /// The nodes are no longer marked to be kept stopped.
    Started,
    /// Nothing: a dry run.
    Nothing,
}

/// One line of `watch`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LineOutput<'a> {
    #[schemars(with = "String")]
    time: Time,
    /// The node it is about; none for the cluster as a whole.
    node: Option<&'a str>,
    text: &'a str,
    /// In the last line: how the restart ended.
    ended: Option<&'a HistoryEntry>,
}

impl StatusOutput {
    pub(super) fn of(view: &View) -> Self {
        let status = view.status.clone().unwrap_or_default();
        let listed = status.report.nodes.iter().map(|report| report.name.clone());
        let mut names: Vec<String> = listed.collect();
        for pod in &view.pods {
            let worth = pod.phase.is_some() || view.is_kept_stopped(pod);
            if worth && !names.contains(&pod.node) {
                names.push(pod.node.clone());
            }
        }
        Self {
            cluster: view.name.clone(),
            namespace: view.namespace.clone(),
            seen: view.status.is_some(),
            phase: status.report.phase,
            blocked: status.report.blocked,
            message: status.report.message,
            estimate: status.report.estimate,
            paused: view.paused,
            counts: status.report.counts,
            nodes: names.iter().map(|name| NodeOutput::of(view, name)).collect(),
            restart: view.restart().map(RestartOutput::of),
            queued: view.queued().cloned(),
            requested: view.requested().and_then(Result::ok),
            conditions: status.report.conditions,
            last: status.ledger.history.last().cloned(),
        }
    }
}

impl RestartOutput {
    fn of(restart: &Restart) -> Self {
        let done = restart.members.iter().filter(|member| member.step == Step::Finished);
        Self {
            request: restart.request.clone(),
            started: restart.started,
            nodes: restart.members.len(),
            done: done.count(),
            ending: restart.ending.as_ref().map(|ending| ending.outcome.as_str().to_owned()),
        }
    }
}

impl NodeOutput {
    pub(super) fn of(view: &View, node: &str) -> Self {
        let pod: Option<&Pod> = view.node(node);
        let report = view.report(node).cloned().unwrap_or_default();
        Self {
            name: node.to_owned(),
            pod: pod.map(|pod| pod.name.clone()),
            pod_uid: pod.map(|pod| pod.uid.clone()),
            ready: pod.map(|pod| pod.ready),
            phase: pod.map_or(report.phase, |pod| pod.phase.clone()),
            kept_stopped: pod.is_some_and(|pod| view.is_kept_stopped(pod)),
            state: report.state,
            checksum: report.checksum,
            blocked_by: report.blocked_by,
            message: report.message,
            last_restart: pod.and_then(|pod| pod.last_restart.clone()),
        }
    }
}

impl PlanOutput {
    pub(super) fn of(view: &View, ahead: Option<&Ahead>) -> Self {
        let report = view.status.clone().unwrap_or_default().report;
        let members = view.restart().map_or(&[][..], |restart| &restart.members);
        let now = members.iter().filter(|member| member.is_under_way());
        let now = now.map(|member| NodeOutput::of(view, &member.node)).collect();
        let waits = |uid: &str| {
            members.iter().any(|member| member.pod_uid == uid && member.step == Step::Scheduled)
        };
        let order = view.in_order();
        let waiting = order.iter().filter(|pod| waits(&pod.uid));
        Self {
            cluster: view.name.clone(),
            namespace: view.namespace.clone(),
            blocked: report.blocked,
            message: report.message,
            restart: view.restart().map(RestartOutput::of),
            now,
            waiting: waiting.map(|pod| NodeOutput::of(view, &pod.node)).collect(),
            queued: view.queued().cloned(),
            requested: view.requested().and_then(Result::ok),
            forecast: ahead.map(ForecastOutput::of),
        }
    }
}

impl HistoryOutput {
    pub(super) fn of(view: &View) -> Self {
        Self {
            cluster: view.name.clone(),
            namespace: view.namespace.clone(),
            history: view.history().to_vec(),
        }
    }
}

impl<'a> LineOutput<'a> {
    pub(super) fn of(line: &'a Line) -> Self {
        Self {
            time: line.time,
            node: line.node.as_deref(),
            text: &line.text,
            ended: line.ended.as_ref(),
        }
    }
}

/// The JSON schema of everything that `--output json` prints.
pub fn schema() -> Value {
    let mut generator = SchemaGenerator::from(SchemaSettings::draft2020_12());
    let commands = [
        ("status", generator.subschema_for::<StatusOutput>()),
        ("plan", generator.subschema_for::<PlanOutput>()),
        ("why", generator.subschema_for::<NodeOutput>()),
        ("history", generator.subschema_for::<HistoryOutput>()),
        ("restart, cancel, stop, start", generator.subschema_for::<ActOutput>()),
        ("a line of watch and of restart --watch", generator.subschema_for::<LineOutput<'_>>()),
    ];
    let any: Vec<Value> = commands
        .into_iter()
        .map(|(title, schema)| json!({"title": title, "$ref": schema.get("$ref")}))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What kubectl stayput prints with --output json",
        "anyOf": any,
        "$defs": generator.take_definitions(true),
    })
}
