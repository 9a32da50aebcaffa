//! The JSON of `init`.

use schemars::JsonSchema;
use serde::Serialize;

/// `init`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitOutput {
    pub(crate) cluster: String,
    pub(crate) namespace: String,
    /// True for a dry run: nothing was changed.
    pub(crate) dry_run: bool,
    /// The objects, in the order in which they were made.
    pub(crate) objects: Vec<InitObject>,
    /// For people: what the next command brings with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    /// Commands to type next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) next: Vec<String>,
}

/// One object.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitObject {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) result: InitResult,
    /// For people: what it is for, why it was left, or why it is missing and what to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
}

/// Result for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum InitResult {
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
    pub(crate) fn problem(&self) -> Option<String> {
        let missing = self.objects.iter().filter(|one| one.result == InitResult::Missing);
        let all: Vec<String> =
            missing.map(|one| format!("{} {}: {}", one.kind, one.name, one.message)).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}
