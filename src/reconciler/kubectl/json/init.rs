//! The JSON of `init`.

use schemars::JsonSchema;
use serde::Serialize;

/// `init`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::kubectl) struct InitOutput {
    pub(in crate::kubectl) cluster: String,
    pub(in crate::kubectl) namespace: String,
    /// True for a dry run: nothing was changed.
    pub(in crate::kubectl) dry_run: bool,
    /// The objects, in the order in which they were made.
    pub(in crate::kubectl) objects: Vec<InitObject>,
    /// For people: what the next command brings with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::kubectl) notes: Vec<String>,
    /// Commands to type next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::kubectl) next: Vec<String>,
}

/// One object.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::kubectl) struct InitObject {
    pub(in crate::kubectl) kind: String,
    pub(in crate::kubectl) name: String,
    pub(in crate::kubectl) result: InitResult,
    /// For people: what it is for, why it was left, or why it is missing and what to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::kubectl) message: String,
}

/// Result for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::kubectl) enum InitResult {
    /// The object was created.
    Made,
    /// The object was brought up to date.
    Changed,
    /// The object is as it should be.
    Unchanged,
    /// Somebody else made it, and it was not changed.
    Left,
    /// The object is missing, or cannot be used.
    Missing,
}

impl InitOutput {
    /// Why some of the objects are missing.
    pub(in crate::kubectl) fn problem(&self) -> Option<String> {
        let missing = self.objects.iter().filter(|one| one.result == InitResult::Missing);
        let all: Vec<String> =
            missing.map(|one| format!("{} {}: {}", one.kind, one.name, one.message)).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}
