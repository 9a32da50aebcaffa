//! What a person declares.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{Config, Engine, Manager, SearchClusterStatus};
use crate::restart;

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
           the rules, when somebody asks or when its config changed.",
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.phase",
        "description": "What is going on with the cluster as a whole."}"#,
    printcolumn = r#"{"name": "Restart", "type": "string", "jsonPath": ".status.progress",
        "description": "Strategy of the restart under way, and how many nodes are done."}"#,
    printcolumn = r#"{"name": "Blocked", "type": "string", "jsonPath": ".status.blocked",
        "description": "The rule or fault that keeps it from going on."}"#,
    printcolumn = r#"{"name": "Pods", "type": "integer", "jsonPath": ".status.counts.pods",
        "description": "Pods that the selector finds."}"#,
    printcolumn = r#"{"name": "Ready", "type": "integer", "jsonPath": ".status.counts.ready",
        "description": "Pods that are ready."}"#,
    printcolumn = r#"{"name": "Pending", "type": "integer", "jsonPath": ".status.counts.pendingRestart",
        "description": "Nodes that run on another config than their sources have."}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.message", "priority": 1,
        "description": "What is waited for, and what to do about it."}"#
)]
#[serde(rename_all = "camelCase")]
pub struct SearchClusterSpec {
    /// Which pods are the cluster's nodes.
    pub pods: Pods,
    /// How the engine is reached. Distribution and version are asked from it.
    pub engine: Engine,
    /// How the managers in the pods are reached.
    pub manager: Manager,
    /// What the engine's config is made from.
    #[serde(default)]
    pub config: Config,
    /// How a restart goes about it.
    #[serde(default)]
    pub restart: RestartSpec,
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

/// Which pods are the cluster's nodes.
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

/// How a restart goes about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RestartSpec {
    /// How many nodes may be down at once because of us.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_unavailable: u32,
    /// Name of the node attribute that holds a node's zone (`node.attr.zone`: `zone`).
    #[schemars(length(min = 1, max = 128))]
    pub zone_attribute: String,
    /// A stop may cost the quorum, or the last copy of a shard: a cluster that cannot be restarted
    /// without an outage is restarted with one.
    pub allow_outage: bool,
    /// How long one phase of one node may take before it is turned back: "15m", "90s".
    #[schemars(schema_with = "duration")]
    pub phase_timeout: String,
    /// How long a node is unready before its stop signal: "10s".
    #[schemars(schema_with = "duration")]
    pub drain: String,
    /// What to do by ourselves about nodes that run on another config than their sources have:
    /// show it and wait to be asked (none), or restart them.
    pub on_config_change: OnConfigChange,
    /// A node that does not come up on the new config is started on the last good one.
    pub rollback: bool,
}

impl Default for RestartSpec {
    fn default() -> Self {
        let policy = restart::Policy::default();
        Self {
            max_unavailable: policy.max_unavailable,
            zone_attribute: policy.zone_attribute,
            allow_outage: policy.allow_outage,
            // A test compares the two with the policy.
            phase_timeout: "15m".into(),
            drain: "10s".into(),
            on_config_change: OnConfigChange::None,
            rollback: policy.rollback,
        }
    }
}

/// What to do by ourselves about a changed config.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnConfigChange {
    /// Show it, and wait to be asked.
    #[default]
    None,
    /// Restart the nodes concerned one by one.
    Rolling,
    /// Restart the nodes concerned together.
    Coordinated,
}

impl From<OnConfigChange> for restart::OnConfigChange {
    fn from(written: OnConfigChange) -> Self {
        match written {
            OnConfigChange::None => Self::None,
            OnConfigChange::Rolling => Self::Rolling,
            OnConfigChange::Coordinated => Self::Coordinated,
        }
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

/// A rule instead of a bare pattern: its refusal says what to write.
fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 32,
        "x-kubernetes-validations": [{
            "rule": "self.matches('^[0-9]+(ms|s|m|h)( ?[0-9]+(ms|s|m|h))*$')",
            "message": "write a duration such as \"15m\", \"90s\" or \"1m 30s\"",
        }],
    })
}
