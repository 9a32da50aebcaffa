//! `spec.restart`: how restarts are done.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::windows::WindowSpec;
use stayput_restart::{self as restart, OnConfigChange};

/// How restarts are done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RestartSpec {
    /// How many nodes may be unavailable at the same time: a number, or a percentage ("25%"; rounded
    /// down, but at least 1).
    #[schemars(schema_with = "share")]
    pub max_unavailable: IntOrString,
    /// In addition, how many nodes with a role may be unavailable at the same time:
    /// `{data_hot: 2, data: "10%"}`. Roles are spelled as the engine does.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "shares")]
    pub max_unavailable_of_role: BTreeMap<String, IntOrString>,
    /// Predicates that are not evaluated, by their published names, or "*" for all. The annotation
    /// eck.k8s.elastic.co/disable-upgrade-predicates does the same. Empty it after use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        inner(length(min = 1, max = 128)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub disabled_predicates: Vec<String>,
    /// Name of the node attribute that holds a node's zone (`node.attr.zone`: `zone`).
    #[schemars(length(min = 1, max = 128))]
    pub zone_attribute: String,
    /// Allow stops that lose the quorum, or the last copy of a shard: a cluster that cannot be
    /// restarted without an outage is restarted with one.
    pub allow_outage: bool,
    /// How long one phase of one node may take before its restart is aborted: "15m", "90s". Elasticsearch
    /// may take 10 minutes of it to move the jobs of machine learning off a node before its stop.
    #[schemars(schema_with = "duration")]
    pub phase_timeout: String,
    /// How long a node is not ready before its stop signal: "auto" (until no Service sends requests to
    /// it any more, at most 10 s), or a fixed time such as "10s".
    #[schemars(schema_with = "drain")]
    pub drain: String,
    /// How to treat nodes that run on another config than their sources have: only show them (none), or
    /// restart them without a request.
    pub on_config_change: OnConfigChange,
    /// Start a node on the last good config if it does not become ready on the new one.
    pub rollback: bool,
    /// When nodes may be stopped; always if there are none. A node that is stopped already is
    /// finished, and a request may say that it does not wait.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub windows: Vec<WindowSpec>,
}

impl Default for RestartSpec {
    fn default() -> Self {
        let policy = restart::Policy::default();
        Self {
            max_unavailable: IntOrString::Int(1),
            max_unavailable_of_role: BTreeMap::new(),
            disabled_predicates: Vec::new(),
            zone_attribute: policy.zone_attribute,
            allow_outage: policy.allow_outage,
            // A test compares the two with the policy.
            phase_timeout: "15m".into(),
            drain: "auto".into(),
            on_config_change: OnConfigChange::None,
            rollback: policy.rollback,
            windows: Vec::new(),
        }
    }
}

/// Schema of a duration. A rule instead of a pattern: its message says what to write.
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

/// Schema of a duration, or `auto`.
fn drain(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 32,
        "x-kubernetes-validations": [{
            "rule": "self == 'auto' || self.matches('^[0-9]+(ms|s|m|h)( ?[0-9]+(ms|s|m|h))*$')",
            "message": "write auto, or a duration such as \"10s\"; \"0s\" is none",
        }],
    })
}

/// Schema of a number of nodes, or a percentage. The message of the rule says what to write.
fn share(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "maximum": 10_000,
        "maxLength": 32,
        "x-kubernetes-validations": [{
            "rule": "type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",
            "message": "write a number of nodes, 1 to 10000, or a percentage, \"1%\" to \"100%\"; with 0 \
                        nothing could ever be restarted",
        }],
    })
}

/// Schema of the number of nodes, or percentage, of each role. A rule for each value would cost more than
/// Kubernetes allows.
fn shares(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": {
            "x-kubernetes-int-or-string": true,
            "minimum": 1,
            "maximum": 10_000,
            "maxLength": 32,
            "pattern": "^([1-9][0-9]?|100)%$",
        },
    })
}
