//! JSON patches of metadata. Each begins with `test` operations: it is refused if what it changes is
//! no longer as it was observed.
//!
//! A `test` of a key with null holds if the key is absent and its map exists. An object without any
//! annotation has no map: then the test is that the map itself is absent.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cluster::SearchCluster;
use crate::controller::pods::Facts;
use stayput_restart::{Change, annotation};

/// Changes annotations of a pod.
pub(super) fn pod(pod: &Facts, changes: &BTreeMap<String, Change>) -> Value {
    let mut patch = vec![json!({"op": "test", "path": "/metadata/uid", "value": pod.uid})];
    if pod.is_annotated {
        for (key, change) in changes {
            patch.push(json!({"op": "test", "path": at(key), "value": change.seen}));
        }
        for (key, change) in changes {
            match (&change.wanted, &change.seen) {
                (Some(value), _) => {
                    patch.push(json!({"op": "add", "path": at(key), "value": value}));
                }
                (None, Some(_)) => patch.push(json!({"op": "remove", "path": at(key)})),
                (None, None) => {}
            }
        }
    } else {
        let wanted: BTreeMap<&String, &String> = changes
            .iter()
            .filter_map(|(key, change)| Some((key, change.wanted.as_ref()?)))
            .collect();
        patch.push(json!({"op": "test", "path": "/metadata/annotations", "value": null}));
        patch.push(json!({"op": "add", "path": "/metadata/annotations", "value": wanted}));
    }
    Value::Array(patch)
}

/// Replaces the phase on the SearchCluster by a request. Only on the version that was read: a patch
/// that arrives late would make a second request of a phase that is written again.
pub(super) fn claim(cluster: &SearchCluster, phase: &str, request: &str) -> Value {
    let version = &cluster.metadata.resource_version;
    json!([
        {"op": "test", "path": "/metadata/uid", "value": cluster.metadata.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "test", "path": at(annotation::PHASE), "value": phase},
        {"op": "remove", "path": at(annotation::PHASE)},
        {"op": "add", "path": at(annotation::REQUEST), "value": request},
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
    finalizers(cluster, |all| all.push(annotation::FINALIZER.to_owned()))
}

pub(super) fn remove_finalizer(cluster: &SearchCluster) -> Value {
    finalizers(cluster, |all| all.retain(|name| name != annotation::FINALIZER))
}

fn finalizers(cluster: &SearchCluster, change: impl FnOnce(&mut Vec<String>)) -> Value {
    let seen = &cluster.metadata.finalizers;
    let mut wanted = seen.clone().unwrap_or_default();
    change(&mut wanted);
    json!([
        {"op": "test", "path": "/metadata/uid", "value": cluster.metadata.uid},
        {"op": "test", "path": "/metadata/finalizers", "value": seen},
        {"op": "add", "path": "/metadata/finalizers", "value": wanted},
    ])
}

/// Path of an annotation (RFC 6901).
fn at(key: &str) -> String {
    format!("/metadata/annotations/{}", key.replace('~', "~0").replace('/', "~1"))
}
