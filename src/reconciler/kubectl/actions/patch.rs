//! JSON patches, each refused if the object has another resource version by then.

use serde_json::{Value, json};

use crate::kubectl::cluster_view::ClusterView;
use stayput_restart::annotation;

/// Writes a request onto a SearchCluster, with our finalizer if the reconciler is known to work: it
/// needs both before the first stop, and would write the finalizer in a patch of its own.
pub(super) fn request(view: &ClusterView, text: &str, reconciler_works: bool) -> Value {
    let (version, key) = (&view.resource_version, annotation::REQUEST);
    let mut patch = steps_of_annotation(version, view.has_annotations, key, Some(text));
    let is_there = view.finalizers.iter().any(|one| one == annotation::FINALIZER);
    if reconciler_works && !is_there {
        let all = view.finalizers.iter().map(String::as_str).chain([annotation::FINALIZER]);
        let all: Vec<&str> = all.collect();
        patch.push(json!({"op": "add", "path": "/metadata/finalizers", "value": all}));
    }
    Value::Array(patch)
}

/// Sets an annotation, or removes it if there is no value.
pub(super) fn set_annotation(
    resource_version: &str,
    has_annotations: bool,
    key: &str,
    value: Option<&str>,
) -> Value {
    steps_of_annotation(resource_version, has_annotations, key, value).into()
}

fn steps_of_annotation(
    resource_version: &str,
    has_annotations: bool,
    key: &str,
    value: Option<&str>,
) -> Vec<Value> {
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
    patch
}

/// Sets `spec.paused` of a SearchCluster.
pub(super) fn set_paused(resource_version: &str, paused: bool) -> Value {
    json!([only_at(resource_version), {"op": "add", "path": "/spec/paused", "value": paused}])
}

fn only_at(resource_version: &str) -> Value {
    json!({"op": "test", "path": "/metadata/resourceVersion", "value": resource_version})
}
