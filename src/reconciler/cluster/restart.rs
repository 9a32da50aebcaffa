//! What a person declares about restarts.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use stayput_restart as restart;

/// How a restart goes about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RestartSpec {
    /// How many nodes may be unavailable at once: a number, or of a hundred ("25%"; rounded down, but
    /// never to none).
    #[schemars(schema_with = "share")]
    pub max_unavailable: IntOrString,
    /// How many nodes with a role may be unavailable at once, besides: `{data_hot: 2, data: "10%"}`.
    /// Roles as the engine spells them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "shares")]
    pub max_unavailable_of_role: BTreeMap<String, IntOrString>,
    /// Predicates that are not evaluated, by their published names, or "*" for all ten. The annotation
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
            max_unavailable: IntOrString::Int(1),
            max_unavailable_of_role: BTreeMap::new(),
            disabled_predicates: Vec::new(),
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

/// A number of nodes, or a part of them in percent. What is neither is refused by a rule that says what
/// to write.
fn share(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "maximum": 10_000,
        "maxLength": 32,
        "x-kubernetes-validations": [{
            "rule": "type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",
            "message": "write how many nodes, 1 to 10000, or how many of a hundred, \"1%\" to \"100%\"; \
                        with none nothing could ever be restarted",
        }],
    })
}

/// The same of each role. A rule for each value would cost more than Kubernetes allows.
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
