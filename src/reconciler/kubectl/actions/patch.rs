//! JSON patches, each refused if the object has another resource version by then.

use serde_json::{Value, json};

/// How often a patch is tried when another client has changed the object meanwhile.
pub(in crate::kubectl) const MAX_ATTEMPTS: usize = 5;

/// Sets an annotation, or removes it if there is no value.
pub(super) fn set_annotation(
    resource_version: &str,
    has_annotations: bool,
    key: &str,
    value: Option<&str>,
) -> Value {
    let mut patch = vec![only_at(resource_version)];
    if !has_annotations {
        patch.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
    }
    // RFC 6901 escapes `~` and `/`.
    let path = format!("/metadata/annotations/{}", key.replace('~', "~0").replace('/', "~1"));
    patch.push(match value {
        Some(value) => json!({"op": "add", "path": path, "value": value}),
        None => json!({"op": "remove", "path": path}),
    });
    Value::Array(patch)
}

/// Sets `spec.paused` of a SearchCluster.
pub(super) fn set_paused(resource_version: &str, paused: bool) -> Value {
    json!([only_at(resource_version), {"op": "add", "path": "/spec/paused", "value": paused}])
}

fn only_at(resource_version: &str) -> Value {
    json!({"op": "test", "path": "/metadata/resourceVersion", "value": resource_version})
}
