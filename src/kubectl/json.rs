//! Types of `--output json`: `proto/kubectl-stayput.schema.json` is made from them. Fields are added,
//! never renamed or removed.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value, json};
use stayput_restart::{
    Condition, Counts, Ending, HistoryEntry, LastRestart, Member, Request, Restart, Time,
    UpdateStep,
};

use crate::actions::ActionOutput;
use crate::diff::Diff;
use crate::doctor::DoctorOutput;
use crate::init::InitOutput;
use crate::inject::InjectOutput;
use crate::progress::Line;
use crate::snapshot::DatedForecast;
use crate::ui::UiOutput;
use crate::view::node::NodeView;
use crate::view::{ClusterView, config_from, finished};

/// The JSON schema of everything that `--output json` prints.
pub fn schema() -> Value {
    let mut generator = SchemaGenerator::from(SchemaSettings::draft2020_12().for_serialize());
    let commands = [
        ("status", generator.subschema_for::<StatusOutput>()),
        ("plan", generator.subschema_for::<PlanOutput>()),
        ("why", generator.subschema_for::<NodeOutput>()),
        ("diff", generator.subschema_for::<Diff>()),
        ("doctor", generator.subschema_for::<DoctorOutput>()),
        ("history", generator.subschema_for::<HistoryOutput>()),
        ("status -A", generator.subschema_for::<AllOutput<StatusOutput>>()),
        ("history -A", generator.subschema_for::<AllOutput<HistoryOutput>>()),
        ("init", generator.subschema_for::<InitOutput>()),
        ("inject --check", generator.subschema_for::<InjectOutput<'_>>()),
        ("ui", generator.subschema_for::<UiOutput>()),
        (
            "restart, cancel, pause, resume, stop, start, detach",
            generator.subschema_for::<ActionOutput>(),
        ),
        ("a line of watch and of restart --watch", generator.subschema_for::<Line>()),
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

/// `status`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusOutput {
    cluster: String,
    namespace: String,
    /// True if the reconciler has written a status. If not, all that comes from it is empty here.
    has_status: bool,
    /// Why no reconciler works, and what to read about that; for people. Not set if one works, or if the
    /// user may not read its Lease.
    reconciler: Option<String>,
    phase: String,
    /// Code of the rule or fault that blocks the cluster as a whole.
    blocked: Option<String>,
    /// The reason for waiting, and the remedy, for people.
    message: Option<String>,
    /// How much longer the restart takes, for people.
    estimate: Option<String>,
    paused: bool,
    counts: Counts,
    /// The Secrets and ConfigMaps that the config is made from, and the absent ones, for people.
    config_from: Option<String>,
    /// Nodes that are in a phase, down, blocked, stopped or on another config than their sources have.
    nodes: Vec<NodeOutput>,
    /// The restart under way.
    restart: Option<RestartOutput>,
    /// The request that waits for the restart under way to end.
    queued: Option<Request>,
    /// The request that the reconciler has not accepted yet.
    requested: Option<Request>,
    conditions: Vec<Condition>,
    /// The restart that ended last.
    last_restart: Option<HistoryEntry>,
}

/// `history`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HistoryOutput {
    cluster: String,
    namespace: String,
    /// As in `status`.
    reconciler: Option<String>,
    /// The restarts that have ended, the latest last.
    history: Vec<HistoryEntry>,
}

/// `status -A` and `history -A`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AllOutput<T> {
    /// Of all namespaces, by namespace and name.
    clusters: Vec<T>,
}

impl<T> AllOutput<T> {
    pub(crate) fn new(views: &[ClusterView], of: fn(&ClusterView) -> T) -> Self {
        Self { clusters: views.iter().map(of).collect() }
    }
}

impl StatusOutput {
    pub(crate) fn new(view: &ClusterView) -> Self {
        let status = view.status.clone().unwrap_or_default();
        Self {
            cluster: view.name.clone(),
            namespace: view.namespace.clone(),
            has_status: view.status.is_some(),
            reconciler: view.reconciler.warning(),
            phase: status.report.phase,
            blocked: status.report.blocked,
            message: status.report.message,
            estimate: status.report.estimate,
            paused: view.paused,
            counts: status.report.counts,
            config_from: config_from(view),
            nodes: view.noted_nodes().iter().map(NodeOutput::new).collect(),
            restart: view.restart().map(RestartOutput::new),
            queued: view.queued().cloned(),
            requested: view.requested().and_then(Result::ok),
            conditions: status.report.conditions,
            last_restart: status.ledger.history.last().cloned(),
        }
    }
}

impl HistoryOutput {
    pub(crate) fn new(view: &ClusterView) -> Self {
        Self {
            cluster: view.name.clone(),
            namespace: view.namespace.clone(),
            reconciler: view.reconciler.warning(),
            history: view.history().to_vec(),
        }
    }
}

/// `why`, and each node of `status` and `plan`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeOutput {
    name: String,
    pod: Option<String>,
    pod_uid: Option<String>,
    ready: Option<bool>,
    /// Phase of its restart, as its pod shows it.
    phase: Option<String>,
    /// An annotation or the spec keeps it stopped.
    kept_stopped: bool,
    /// The revision that its pod was made from, while the label of the pod names the one that it is to get.
    #[serde(skip_serializing_if = "Option::is_none")]
    actual_revision: Option<String>,
    /// State of its engine.
    state: Option<String>,
    /// Checksum of the config it runs on; its first twelve digits.
    checksum: Option<String>,
    /// The Secrets and ConfigMaps that its config is made from; empty if they are not known.
    config_from: Vec<String>,
    /// How its restart, or the one that it needs, is carried out: `relabel`, `restart`, `container`,
    /// `resize` or `replace`.
    step: Option<&'static str>,
    /// The fields of its pod template that need this step, with their values; the first few.
    because: Vec<String>,
    /// Code of why it is down, as `nodes[].down` in the status.
    down: Option<String>,
    /// Code of what blocks it.
    blocked_by: Option<String>,
    /// Code of what it waits for, if that blocks nothing.
    waits_for: Option<String>,
    /// Why it is down, what to do, and what it waits for, for people; or that the status has no room for
    /// this node.
    message: Option<String>,
    last_restart: Option<LastRestart>,
    /// In `why`: why no reconciler works, and what to read about that; for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    reconciler: Option<String>,
}

impl NodeOutput {
    pub(crate) fn new(node: &NodeView<'_>) -> Self {
        let report = node.report.cloned().unwrap_or_default();
        let pod = node.pod;
        Self {
            name: node.name.to_owned(),
            pod: pod.map(|pod| pod.name.clone()),
            pod_uid: pod.map(|pod| pod.uid.clone()),
            ready: pod.map(|pod| pod.ready),
            phase: node.phase().map(str::to_owned),
            kept_stopped: node.is_kept_stopped(),
            actual_revision: pod.and_then(|pod| pod.actual_revision.clone()),
            state: report.state,
            checksum: report.checksum,
            config_from: pod.map(|pod| pod.config_from.clone()).unwrap_or_default(),
            step: report.step.map(UpdateStep::name),
            because: report.because,
            down: report.down,
            blocked_by: report.blocked_by,
            waits_for: report.waits_for,
            message: node.message(),
            last_restart: pod.and_then(|pod| pod.last_restart.clone()),
            reconciler: None,
        }
    }

    /// The output of `why` for one node.
    pub(crate) fn why(node: &NodeView<'_>) -> Self {
        Self { reconciler: node.cluster.reconciler.warning(), ..Self::new(node) }
    }
}

/// A restart under way.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RestartOutput {
    request: Request,
    #[schemars(with = "String")]
    started: Time,
    /// How many nodes are part of it.
    nodes: usize,
    /// How many of them are finished.
    finished: usize,
    /// How it will end, once no further node is stopped.
    ending: Option<Ending>,
}

impl RestartOutput {
    pub(crate) fn new(restart: &Restart) -> Self {
        Self {
            request: restart.request.clone(),
            started: restart.started,
            nodes: restart.members.len(),
            finished: finished(restart),
            ending: restart.ending.clone(),
        }
    }
}

/// `plan`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanOutput {
    cluster: String,
    namespace: String,
    /// Code of the rule or fault that blocks the cluster as a whole.
    blocked: Option<String>,
    /// The reason for waiting, and the remedy, for people.
    message: Option<String>,
    /// The restart under way.
    restart: Option<RestartOutput>,
    /// Nodes that are being restarted, or started again because the restart aborts.
    restarting: Vec<NodeOutput>,
    /// Nodes that wait for their turn, in the order of the restart as far as that is known without
    /// the engine.
    scheduled: Vec<NodeOutput>,
    /// The request that waits for the restart under way to end.
    queued: Option<Request>,
    /// The request that the reconciler has not accepted yet.
    requested: Option<Request>,
    /// The dry run, if the reconciler gave a snapshot.
    forecast: Option<DatedForecast>,
    /// Why there is no dry run; for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_forecast: Option<String>,
}

impl PlanOutput {
    /// The output without a forecast, with the reason for that.
    pub(crate) fn new(view: &ClusterView, forecast: Result<&DatedForecast, &String>) -> Self {
        let report = view.status.clone().unwrap_or_default().report;
        let members = view.restart().into_iter().flat_map(|restart| &restart.members);
        let restarting = members.filter(|member| member.is_under_way());
        let node = |member: &Member| NodeOutput::new(&view.node(&member.node));
        Self {
            cluster: view.name.clone(),
            namespace: view.namespace.clone(),
            blocked: report.blocked,
            message: report.message,
            restart: view.restart().map(RestartOutput::new),
            restarting: restarting.map(node).collect(),
            scheduled: view.scheduled().into_iter().map(node).collect(),
            queued: view.queued().cloned(),
            requested: view.requested().and_then(Result::ok),
            forecast: forecast.ok().cloned(),
            no_forecast: forecast.err().cloned(),
        }
    }
}
