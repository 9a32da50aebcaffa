//! Changes that are written down before a node is made to leave, because they must be undone.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Changes on the engine for nodes that leave. They are undone once a node has left, or stays after
/// all.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Leaving {
    /// Names of the nodes that are excluded from allocation because they leave.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub nodes: BTreeSet<String>,
    /// The persistent exclusion before ours, if ours was added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent: Option<ExcludedBefore>,
    /// The transient exclusion before ours, if ours was added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transient: Option<ExcludedBefore>,
    /// The node that is excluded from voting because it leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voter: Option<String>,
}

/// `cluster.routing.allocation.exclude._name` before us. Unset is a value.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct ExcludedBefore {
    /// The value as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl Leaving {
    /// Nothing is to be undone.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
