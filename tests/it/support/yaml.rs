//! Manifests as JSON.

use serde_json::Value;

/// The objects of a manifest.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("YAML")
}
