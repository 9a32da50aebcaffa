//! `spec.nodeSets`: the nodes of a declared cluster.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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

/// Whatever the engine or Kubernetes takes there.
fn open(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

fn open_list(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "maxItems": 8, "items": open(generator) })
}
