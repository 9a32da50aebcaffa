//! JSON patches. Each begins with `test` operations: it is refused if what it changes is
//! no longer as it was observed.
//!
//! A `test` of a key with null holds if the key is absent and its map exists. An object without any
//! annotation has no map: then the test is that the map itself is absent.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cluster::SearchCluster;
use crate::controller::failure::Failure;
use crate::controller::pods::Facts;
use stayput_restart::{Change, annotation};

/// Changes annotations of a pod.
pub(super) fn pod(pod: &Facts, changes: &BTreeMap<String, Change>) -> Value {
    revision(pod, &BTreeMap::new(), changes)
}

/// Changes labels and annotations of a pod.
pub(super) fn revision(
    pod: &Facts,
    labels: &BTreeMap<String, Change>,
    annotations: &BTreeMap<String, Change>,
) -> Value {
    let mut patch = vec![is_pod(pod)];
    let (mut tests, mut changes) = map("/metadata/labels", !pod.labels.is_empty(), labels);
    let of_annotations = map("/metadata/annotations", pod.is_annotated, annotations);
    tests.extend(of_annotations.0);
    changes.extend(of_annotations.1);
    patch.extend(tests.into_iter().chain(changes));
    Value::Array(patch)
}

/// Tests and changes of one map of texts.
fn map(path: &str, exists: bool, changes: &BTreeMap<String, Change>) -> (Vec<Value>, Vec<Value>) {
    if changes.is_empty() {
        return (vec![], vec![]);
    }
    if !exists {
        let wanted: BTreeMap<&String, &String> = changes
            .iter()
            .filter_map(|(key, change)| Some((key, change.wanted.as_ref()?)))
            .collect();
        return (
            vec![json!({"op": "test", "path": path, "value": null})],
            vec![json!({"op": "add", "path": path, "value": wanted})],
        );
    }
    let at = |key: &str| format!("{path}/{}", escaped(key));
    let tests = changes
        .iter()
        .map(|(key, change)| json!({"op": "test", "path": at(key), "value": change.seen}));
    let writes = changes.iter().filter_map(|(key, change)| match (&change.wanted, &change.seen) {
        (Some(value), _) => Some(json!({"op": "add", "path": at(key), "value": value})),
        (None, Some(_)) => Some(json!({"op": "remove", "path": at(key)})),
        (None, None) => None,
    });
    (tests.collect(), writes.collect())
}

/// Whether a patch is refused if anything of the pod has changed since it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::controller) enum On {
    /// It changes the pod. One that arrives late would change a pod that was brought back meanwhile to
    /// what it had.
    ThisVersion,
    /// It is a dry run. The version changes with each status.
    AnyVersion,
}

/// Changes images of a pod's containers.
pub(in crate::controller) fn images(
    pod: &Facts,
    on: On,
    images: &BTreeMap<String, Change>,
) -> Result<Value, Failure> {
    containers(pod, on, "image", images, |text| Ok(json!(text)))
}

/// Changes CPU and memory of a pod's containers, for `pods/resize`.
pub(in crate::controller) fn resources(
    pod: &Facts,
    on: On,
    resources: &BTreeMap<String, Change>,
) -> Result<Value, Failure> {
    containers(pod, on, "resources", resources, |text| serde_json::from_str(text))
}

/// Replaces a field of containers that still have the names and values that were seen.
fn containers(
    pod: &Facts,
    on: On,
    field: &str,
    changes: &BTreeMap<String, Change>,
    decode: impl Fn(&str) -> serde_json::Result<Value>,
) -> Result<Value, Failure> {
    let value = |text: &Option<String>| {
        let value = text.as_deref().map(&decode).transpose();
        value.map_err(|source| Failure::Encode { what: "the size of a container", source })
    };
    let version = (on == On::ThisVersion).then(|| {
        json!({
            "op": "test", "path": "/metadata/resourceVersion", "value": pod.version.to_string(),
        })
    });
    let mut tests: Vec<Value> = std::iter::once(is_pod(pod)).chain(version).collect();
    let mut writes = vec![];
    for (name, change) in changes {
        let container = pod.live.as_ref().and_then(|live| live.container(name));
        let Some(container) = container else {
            let (pod, container) = (pod.name.clone(), name.clone());
            return Err(Failure::NoContainer { pod, container });
        };
        let at = format!("/spec/{}", container.place);
        let path = format!("{at}/{field}");
        tests.push(json!({"op": "test", "path": format!("{at}/name"), "value": name}));
        tests.push(json!({"op": "test", "path": path, "value": value(&change.seen)?}));
        writes.push(json!({"op": "replace", "path": path, "value": value(&change.wanted)?}));
    }
    tests.append(&mut writes);
    Ok(Value::Array(tests))
}

fn is_pod(pod: &Facts) -> Value {
    json!({"op": "test", "path": "/metadata/uid", "value": pod.uid})
}

/// Replaces the phase on the SearchCluster by a request, and puts our finalizer there, which the restart
/// needs. Only on the version that was read: a patch that arrives late would make a second request of a
/// phase that is written again.
pub(super) fn claim(cluster: &SearchCluster, phase: &str, request: &str) -> Value {
    let version = &cluster.metadata.resource_version;
    let finalizers = with_ours(cluster);
    json!([
        {"op": "test", "path": "/metadata/uid", "value": cluster.metadata.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "test", "path": at(annotation::PHASE), "value": phase},
        {"op": "remove", "path": at(annotation::PHASE)},
        {"op": "add", "path": at(annotation::REQUEST), "value": request},
        {"op": "add", "path": "/metadata/finalizers", "value": finalizers},
    ])
}

/// Takes an annotation from the SearchCluster.
pub(super) fn clear(cluster: &SearchCluster, key: &str, value: &str) -> Value {
    json!([
        {"op": "test", "path": "/metadata/uid", "value": cluster.metadata.uid},
        {"op": "test", "path": at(key), "value": value},
        {"op": "remove", "path": at(key)},
    ])
}

pub(super) fn add_finalizer(cluster: &SearchCluster) -> Value {
    finalizers(cluster, &with_ours(cluster))
}

pub(super) fn remove_finalizer(cluster: &SearchCluster) -> Value {
    finalizers(cluster, &others(cluster))
}

/// The finalizers of others.
fn others(cluster: &SearchCluster) -> Vec<String> {
    let all = cluster.metadata.finalizers.iter().flatten();
    all.filter(|name| *name != annotation::FINALIZER).cloned().collect()
}

/// All finalizers, with ours.
fn with_ours(cluster: &SearchCluster) -> Vec<String> {
    let mut all = others(cluster);
    all.push(annotation::FINALIZER.to_owned());
    all
}

fn finalizers(cluster: &SearchCluster, wanted: &[String]) -> Value {
    let seen = &cluster.metadata.finalizers;
    json!([
        {"op": "test", "path": "/metadata/uid", "value": cluster.metadata.uid},
        {"op": "test", "path": "/metadata/finalizers", "value": seen},
        {"op": "add", "path": "/metadata/finalizers", "value": wanted},
    ])
}

/// Path of an annotation.
fn at(key: &str) -> String {
    format!("/metadata/annotations/{}", escaped(key))
}

/// A key in a path (RFC 6901).
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests;
