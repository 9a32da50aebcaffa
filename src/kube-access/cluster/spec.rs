//! The spec of a SearchCluster, as a user writes it.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stayput_restart::{HistoryEntry, Ledger, Report, UpdateStep};

use crate::cluster::connect::{Engine, Manager};
use crate::cluster::restart::RestartSpec;

/// A cluster whose pods run stayput.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "stayput.dev",
    version = "v1alpha1",
    kind = "SearchCluster",
    namespaced,
    status = "SearchClusterStatus",
    derive = "PartialEq",
    shortname = "scl",
    doc = "An Elasticsearch or OpenSearch cluster whose pods run stayput: restarted in place, by \
           the rules, on request or when its config changed.",
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.phase",
        "description": "Phase of the cluster as a whole."}"#,
    printcolumn = r#"{"name": "Restart", "type": "string", "jsonPath": ".status.progress",
        "description": "Strategy of the restart under way, and how many nodes are finished."}"#,
    printcolumn = r#"{"name": "Blocked", "type": "string", "jsonPath": ".status.blocked",
        "description": "The rule or fault that blocks it."}"#,
    printcolumn = r#"{"name": "Pods", "type": "integer", "jsonPath": ".status.counts.pods",
        "description": "Pods that the selector finds."}"#,
    printcolumn = r#"{"name": "Ready", "type": "integer", "jsonPath": ".status.counts.ready",
        "description": "Pods that are ready."}"#,
    printcolumn = r#"{"name": "Pending", "type": "integer", "jsonPath": ".status.counts.pendingRestart",
        "description": "Nodes that run on another config than their sources have."}"#,
    printcolumn = r#"{"name": "Updates", "type": "integer", "jsonPath": ".status.counts.pendingUpdate", "priority": 1,
        "description": "Pods whose owner wants another template than they are made from."}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.message", "priority": 1,
        "description": "What is waited for, and what to do about it."}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.pods) != has(self.nodeSets)",
        "message": "write either pods, for nodes that are made elsewhere, or nodeSets, to have them \
                    made",
    },
    {
        "rule": "has(self.nodeSets) || (has(self.manager) && has(self.manager.caSecret) && \
                 has(self.manager.auth))",
        "message": "manager.caSecret or manager.auth is missing: name the Secret whose ca.crt is the \
                    CA of the managers' certificates, and write auth: {serviceAccountToken: {}} if in \
                    doubt",
    },
    {
        "rule": "!has(self.nodeSets) || (has(self.engine.distribution) && has(self.engine.version))",
        "message": "with nodeSets, engine.distribution and engine.version say what to run",
    },
    {
        "rule": "has(self.nodeSets) == has(oldSelf.nodeSets)",
        "message": "a cluster stays declared, or attached: make another SearchCluster",
    },
]))]
pub struct SearchClusterSpec {
    /// Selects the pods that are the cluster's nodes, if they are made elsewhere. With `nodeSets` it is left
    /// out.
    #[serde(default, skip_serializing_if = "Pods::is_unset")]
    pub pods: Pods,
    /// How the engine is reached; with `nodeSets`, also what it is.
    pub engine: Engine,
    /// The nodes, if the reconciler is to make them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 50),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub node_sets: Vec<NodeSet>,
    /// How the managers in the pods are reached. With `nodeSets` it may be left out.
    #[serde(default, skip_serializing_if = "Manager::is_unset")]
    pub manager: Manager,
    /// The objects that the engine's config is made from.
    #[serde(default)]
    pub config: Config,
    /// How restarts are done.
    #[serde(default)]
    pub restart: RestartSpec,
    /// How a changed template of a StatefulSet is carried out.
    #[serde(default)]
    pub update: UpdateSpec,
    /// Stop no further node. Nodes that are stopped already are finished.
    #[serde(default)]
    pub paused: bool,
    /// Names of nodes to keep stopped; their pods are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 1000),
        inner(length(min = 1, max = 253)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub stopped: Vec<String>,
}

/// Selects the pods that are the cluster's nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pods {
    /// Finds them by their labels, in the namespace of this object.
    #[schemars(schema_with = "selector")]
    pub selector: LabelSelector,
    /// Label of a pod that holds the name of its engine node. Without it the pod's name is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub node_name_label: Option<String>,
}

impl Pods {
    /// Nothing is written about pods.
    pub(crate) fn is_unset(&self) -> bool {
        *self == Self::default()
    }
}

/// Written by hand: the type is Kubernetes' own and brings no schema.
fn selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "matchLabels": {
                "type": "object",
                "additionalProperties": {"type": "string"},
            },
            "matchExpressions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {"type": "string"},
                        "operator": {
                            "type": "string",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                        },
                        "values": {"type": "array", "items": {"type": "string"}},
                    },
                },
            },
        },
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-validations": [{
            "rule": "(has(self.matchLabels) && size(self.matchLabels) > 0) || \
                     (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
            "message": "pods.selector is empty and would find every pod of the namespace: write a \
                        label under matchLabels",
        }],
    })
}

/// The objects that the engine's config is made from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// The Secrets and ConfigMaps that are mounted as the engine's config. Without them those count
    /// that each pod mounts where the `--config` of its manager is; if these cannot be found, the
    /// mounted files are the expected ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub sources: Vec<Source>,
    /// Files that the engine reloads by itself, as the managers have them (`--live`): a change
    /// needs no restart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    pub live: Vec<String>,
}

/// One Secret or ConfigMap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.secret) != has(self.configMap)",
    "message": "a source of config.sources needs exactly one of secret and configMap",
}]))]
pub struct Source {
    /// Name of a Secret; `{pod}` in it stands for the pod's name. It must be mounted in a pod, or
    /// carry the annotation `stayput.dev/allow` with the name of this SearchCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = TEMPLATE))]
    pub secret: Option<String>,
    /// Name of a ConfigMap; `{pod}` in it stands for the pod's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = TEMPLATE))]
    pub config_map: Option<String>,
    /// Keys to mount, and their paths, as in the pod's volume. By default every key is mounted under its own
    /// name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub items: Vec<Item>,
    /// Name of the manager's config directory (`--config NAME=DIR`) it is mounted in; empty for a
    /// directory without a name.
    #[serde(default)]
    #[schemars(length(max = 253), regex(pattern = "^([^./][^/]*)?$"))]
    pub directory: String,
}

/// A key that is mounted under a path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// The key.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
    /// Path of the file below the directory.
    #[schemars(length(min = 1, max = 1024))]
    pub path: String,
}

/// Names of objects, with `{pod}` for the pod's name.
const TEMPLATE: &str = r"^([a-z0-9.-]|\{pod\})+$";

/// Nodes that have the same config and the same pod template: one StatefulSet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSet {
    /// Name of the set. A set with another name is another set, with other nodes.
    #[schemars(length(min = 1, max = 50), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// How many nodes.
    #[schemars(range(min = 1, max = 1000))]
    pub count: u32,
    /// Settings of the engine, as in its yml file.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "open")]
    pub config: Map<String, Value>,
    /// A pod template, merged over the one that the reconciler makes: containers, volumes and
    /// variables by their names. The engine's container has the name of the distribution.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "open")]
    pub pod_template: Value,
    /// As in a StatefulSet, where it cannot be changed. The one named `data` is mounted as the
    /// engine's data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "open_list")]
    pub volume_claim_templates: Vec<Value>,
    /// As in a StatefulSet: what becomes of the claims of nodes that are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim_retention_policy: Option<ClaimRetention>,
}

/// Retention of the volume claims of nodes that are gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimRetention {
    /// When the StatefulSet is deleted, and with it the SearchCluster.
    #[serde(default)]
    pub when_deleted: Retention,
    /// When the count is lower.
    #[serde(default)]
    pub when_scaled: Retention,
}

/// Keep volume claims, or delete them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Retention {
    /// Keep the claims.
    #[default]
    Retain,
    /// Delete the claims, and with them the data.
    Delete,
}

/// The engine that a declared cluster is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Distribution {
    /// Elasticsearch.
    Elasticsearch,
    /// OpenSearch.
    #[serde(rename = "opensearch")]
    OpenSearch,
}

/// An object with fields that the apiserver does not know.
fn open(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

fn open_list(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "maxItems": 8, "items": open(generator) })
}

/// How edited pod templates are carried out in pods that exist already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.mode == 'off' || self.allow.size() > 0",
    "message": "with an empty update.allow nothing could ever be carried out: name steps there, \
                or set update.mode to off",
}]))]
pub struct UpdateSpec {
    /// off: changes nothing; `kubectl stayput diff` shows the differences. inPlace: a pod whose StatefulSet
    /// has another template now is brought to it by the least step, and the pod is kept where that is
    /// possible. The StatefulSet must have the update strategy OnDelete.
    pub mode: UpdateMode,
    /// The steps that are carried out without being asked for. A pod that needs another one waits.
    #[schemars(length(max = 5), extend("x-kubernetes-list-type" = "set"))]
    pub allow: Vec<AllowedStep>,
}

impl Default for UpdateSpec {
    fn default() -> Self {
        use AllowedStep::Container;
        use AllowedStep::Relabel;
        use AllowedStep::Resize;
        use AllowedStep::Restart;
        Self { mode: UpdateMode::Off, allow: vec![Relabel, Restart, Container, Resize] }
    }
}

/// How edited templates are carried out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UpdateMode {
    /// Not at all.
    #[default]
    Off,
    /// In the pods that exist already.
    InPlace,
}

/// A step that may be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AllowedStep {
    /// Labels and annotations.
    Relabel,
    /// The engine's process is started anew, also for images of other containers than the engine's.
    Restart,
    /// A new container in the same pod.
    Container,
    /// CPU and memory of the pod.
    Resize,
    /// The pod is deleted; the reconciler needs the role of deploy/replace for that.
    Replace,
}

impl From<AllowedStep> for UpdateStep {
    fn from(written: AllowedStep) -> Self {
        match written {
            AllowedStep::Relabel => Self::Relabel,
            AllowedStep::Restart => Self::Restart,
            AllowedStep::Container => Self::Container,
            AllowedStep::Resize => Self::Resize,
            AllowedStep::Replace => Self::Replace,
        }
    }
}

/// The status, written only by the reconciler. Decisions are made from the ledger alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredStatus", into = "StoredStatus")]
pub struct SearchClusterStatus {
    /// The generation of the spec this was made from.
    pub observed_generation: Option<i64>,
    /// The report for people.
    pub report: Report,
    /// The ledger, with the history.
    pub ledger: Ledger,
}

/// Written only by the reconciler: what is known and done, and the ledger that decisions are made from.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StoredStatus {
    /// The generation of the spec this was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i64>,
    #[serde(flatten)]
    report: Report,
    /// Restarts that have ended, latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    history: Vec<HistoryEntry>,
    /// Everything that is decided and under way, also the debts. It is for the reconciler alone: its form is no API.
    #[serde(default, skip_serializing_if = "is_empty")]
    #[schemars(schema_with = "open")]
    ledger: Ledger,
}

fn is_empty(ledger: &Ledger) -> bool {
    *ledger == Ledger::default()
}

impl From<StoredStatus> for SearchClusterStatus {
    fn from(stored: StoredStatus) -> Self {
        let StoredStatus { observed_generation, report, history, ledger } = stored;
        Self { observed_generation, report, ledger: Ledger { history, ..ledger } }
    }
}

impl From<SearchClusterStatus> for StoredStatus {
    fn from(status: SearchClusterStatus) -> Self {
        let SearchClusterStatus { observed_generation, report, mut ledger } = status;
        let history = std::mem::take(&mut ledger.history);
        Self { observed_generation, report, history, ledger }
    }
}

impl JsonSchema for SearchClusterStatus {
    fn schema_name() -> Cow<'static, str> {
        "SearchClusterStatus".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        StoredStatus::json_schema(generator)
    }
}
