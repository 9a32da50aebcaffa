//! JSON patches. Each begins with `test` operations: the apiserver refuses it if the object is no longer as
//! it was observed.
//!
//! A `test` of a key with null holds if the key is absent and its map exists. An object without any
//! annotation has no map: then the test is that the map itself is absent.

use std::collections::BTreeMap;

use json_patch::{Patch, PatchOperation};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::pods::PodFacts;
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::patch_operations::{
    add, annotation, has_uid, is_at_version, place, remove, replace, set_finalizers, test,
};
use stayput_restart::Change;
use stayput_restart::annotation::{FINALIZER, PHASE, REQUEST};

/// Changes annotations of a pod.
pub(super) fn pod(pod: &PodFacts, changes: &BTreeMap<String, Change>) -> Patch {
    let (tests, changes) = map("annotations", pod.is_annotated, changes);
    Patch([has_uid(Some(&pod.uid))].into_iter().chain(tests).chain(changes).collect())
}

/// Changes labels and annotations of a pod, on the version that was read: a late patch of the revision label
/// would mark a pod that was rolled back meanwhile as made from the new template.
pub(super) fn revision(
    pod: &PodFacts,
    labels: &BTreeMap<String, Change>,
    annotations: &BTreeMap<String, Change>,
) -> Patch {
    let first = [has_uid(Some(&pod.uid)), is_at_version(Some(&pod.version.to_string()))];
    let (mut tests, mut changes) = map("labels", !pod.labels.is_empty(), labels);
    let of_annotations = map("annotations", pod.is_annotated, annotations);
    tests.extend(of_annotations.0);
    changes.extend(of_annotations.1);
    Patch(first.into_iter().chain(tests).chain(changes).collect())
}

/// Tests and changes of one string map of the metadata.
fn map(
    name: &str,
    exists: bool,
    changes: &BTreeMap<String, Change>,
) -> (Vec<PatchOperation>, Vec<PatchOperation>) {
    if changes.is_empty() {
        return (vec![], vec![]);
    }
    if !exists {
        let wanted: BTreeMap<&String, &String> = changes
            .iter()
            .filter_map(|(key, change)| Some((key, change.wanted.as_ref()?)))
            .collect();
        let path = place(["metadata", name]);
        return (vec![test(path.clone(), Value::Null)], vec![add(path, json!(wanted))]);
    }
    let at = |key: &str| place(["metadata", name, key]);
    let tests = changes.iter().map(|(key, change)| test(at(key), change.seen.as_deref()));
    let writes = changes.iter().filter_map(|(key, change)| match (&change.wanted, &change.seen) {
        (Some(value), _) => Some(add(at(key), value.as_str())),
        (None, Some(_)) => Some(remove(at(key))),
        (None, None) => None,
    });
    (tests.collect(), writes.collect())
}

/// Version of the pod that a patch requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    /// The version that was read, for a patch that changes the pod. A late one would otherwise change a pod
    /// that was rolled back meanwhile.
    ThisVersion,
    /// Any version, for a dry run. The version changes with each status.
    AnyVersion,
}

/// Changes images of a pod's containers.
pub(crate) fn images(
    pod: &PodFacts,
    on: On,
    images: &BTreeMap<String, Change>,
) -> Result<Patch, Failure> {
    containers(pod, on, "image", images, |text| Ok(json!(text)))
}

/// Changes CPU and memory of a pod's containers, for `pods/resize`.
pub(crate) fn resources(
    pod: &PodFacts,
    on: On,
    resources: &BTreeMap<String, Change>,
) -> Result<Patch, Failure> {
    containers(pod, on, "resources", resources, |text| serde_json::from_str(text))
}

/// Replaces a field of containers that still have the names and values that were observed.
fn containers(
    pod: &PodFacts,
    on: On,
    field: &str,
    changes: &BTreeMap<String, Change>,
    decode: impl Fn(&str) -> serde_json::Result<Value>,
) -> Result<Patch, Failure> {
    let value = |text: &Option<String>| {
        let value = text.as_deref().map(&decode).transpose();
        value.map_err(|source| Failure::Encode { what: "the size of a container", source })
    };
    let version = (on == On::ThisVersion).then(|| is_at_version(Some(&pod.version.to_string())));
    let mut tests: Vec<PatchOperation> =
        std::iter::once(has_uid(Some(&pod.uid))).chain(version).collect();
    let mut writes = vec![];
    for (name, change) in changes {
        let container = pod.live.as_ref().and_then(|live| live.container(name));
        let Some(container) = container else {
            let (pod, container) = (pod.name.clone(), name.clone());
            return Err(Failure::NoContainer { pod, container });
        };
        let path = container.place.with_trailing_token(field);
        tests.push(test(container.place.with_trailing_token("name"), name.as_str()));
        tests.push(test(path.clone(), value(&change.seen)?));
        writes.push(replace(path, value(&change.wanted)?));
    }
    tests.append(&mut writes);
    Ok(Patch(tests))
}

/// Replaces the phase on the SearchCluster by a request, and adds our finalizer, which the restart needs.
/// Only on the version that was read: a late patch would make a second request of a phase that is written
/// again.
pub(super) fn claim(cluster: &SearchCluster, phase: &str, request: &str) -> Patch {
    Patch(vec![
        has_uid(cluster.metadata.uid.as_deref()),
        is_at_version(cluster.metadata.resource_version.as_deref()),
        test(annotation(PHASE), phase),
        remove(annotation(PHASE)),
        add(annotation(REQUEST), request),
        set_finalizers(&with_ours(cluster)),
    ])
}

/// Removes an annotation from the SearchCluster.
pub(super) fn clear(cluster: &SearchCluster, key: &str, value: &str) -> Patch {
    Patch(vec![
        has_uid(cluster.metadata.uid.as_deref()),
        test(annotation(key), value),
        remove(annotation(key)),
    ])
}

pub(super) fn add_finalizer(cluster: &SearchCluster) -> Patch {
    finalizers(cluster, &with_ours(cluster))
}

pub(super) fn remove_finalizer(cluster: &SearchCluster) -> Patch {
    finalizers(cluster, &others(cluster))
}

/// The finalizers of other controllers.
fn others(cluster: &SearchCluster) -> Vec<String> {
    let all = cluster.metadata.finalizers.iter().flatten();
    all.filter(|name| *name != FINALIZER).cloned().collect()
}

/// All finalizers, including ours.
fn with_ours(cluster: &SearchCluster) -> Vec<String> {
    let mut all = others(cluster);
    all.push(FINALIZER.to_owned());
    all
}

fn finalizers(cluster: &SearchCluster, wanted: &[String]) -> Patch {
    let seen = cluster.metadata.finalizers.clone();
    Patch(vec![
        has_uid(cluster.metadata.uid.as_deref()),
        test(place(["metadata", "finalizers"]), seen),
        set_finalizers(wanted),
    ])
}

#[cfg(test)]
mod tests;
