//! The JSON patch of one annotation.

use serde_json::{Value, json};

/// How often a patch is tried when another client has changed the object meanwhile.
pub(in crate::kubectl) const MAX_ATTEMPTS: usize = 5;

/// Sets an annotation, or removes it if there is no value. The patch is refused if the object has
/// another resource version by then.
pub(super) fn set_annotation(
    resource_version: &str,
    has_annotations: bool,
    key: &str,
    value: Option<&str>,
) -> Value {
    let mut patch =
        vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": resource_version})];
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
