//! JSON patches, each refused if the object has another resource version by then.

use json_patch::{Patch, PatchOperation};
use serde_json::json;
use stayput_kube_access::patch_operations::{
    add, annotation, is_at_version, place, remove, set_finalizers,
};
use stayput_restart::annotation::{FINALIZER, REQUEST};

use crate::view::ClusterView;

/// Writes a request onto a SearchCluster, with our finalizer if the reconciler is known to work: it
/// needs both before the first stop, and would write the finalizer in a patch of its own.
pub(crate) fn request(view: &ClusterView, text: &str, reconciler_works: bool) -> Patch {
    let (version, has_annotations) = (&view.resource_version, view.has_annotations);
    let mut patch = steps_of_annotation(version, has_annotations, REQUEST, Some(text));
    let is_there = view.finalizers.iter().any(|one| one == FINALIZER);
    if reconciler_works && !is_there {
        let all: Vec<String> = view.finalizers.iter().cloned().chain([FINALIZER.into()]).collect();
        patch.push(set_finalizers(&all));
    }
    Patch(patch)
}

/// Sets an annotation, or removes it if there is no value.
pub(crate) fn set_annotation(
    resource_version: &str,
    has_annotations: bool,
    key: &str,
    value: Option<&str>,
) -> Patch {
    Patch(steps_of_annotation(resource_version, has_annotations, key, value))
}

fn steps_of_annotation(
    resource_version: &str,
    has_annotations: bool,
    key: &str,
    value: Option<&str>,
) -> Vec<PatchOperation> {
    let mut patch = vec![is_at_version(Some(resource_version))];
    if !has_annotations {
        patch.push(add(place(["metadata", "annotations"]), json!({})));
    }
    patch.push(match value {
        Some(value) => add(annotation(key), value),
        None => remove(annotation(key)),
    });
    patch
}

/// Sets `spec.paused` of a SearchCluster.
pub(crate) fn set_paused(resource_version: &str, paused: bool) -> Patch {
    Patch(vec![is_at_version(Some(resource_version)), add(place(["spec", "paused"]), paused)])
}
