//! `spec.config`: the objects that the engine's config is made from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
