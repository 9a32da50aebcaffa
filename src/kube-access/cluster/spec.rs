//! The spec of a SearchCluster, as a user writes it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{Config, Engine, Manager, NodeSet, RestartSpec, SearchClusterStatus, UpdateSpec};

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
    pub(super) fn is_unset(&self) -> bool {
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
