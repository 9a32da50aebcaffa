//! Fixtures: a spec that nothing is wrong with, and the same with one thing changed.

mod admission;
mod check;
mod crd;
mod declared;
mod resource;
mod secret;
mod sources;
mod windows;

use serde_json::{Value, json};

use crate::cluster::spec::SearchCluster;

/// The smallest SearchCluster that can be used.
fn smallest() -> Value {
    json!({
        "apiVersion": "stayput.dev/v1alpha1",
        "kind": "SearchCluster",
        "metadata": {"name": "logs", "namespace": "search"},
        "spec": {
            "pods": {"selector": {"matchLabels": {"app": "logs"}}},
            "engine": {"scheme": "http"},
            "manager": {"caSecret": "logs-manager-ca", "auth": {"serviceAccountToken": {}}},
        },
    })
}

/// The smallest one with the value at `pointer` (below `spec`) set, or removed if it is null.
fn with(pointer: &str, value: Value) -> Value {
    let mut object = smallest();
    set(&mut object, pointer, value);
    object
}

fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut at = &mut object["spec"];
    let (parents, last) = pointer.rsplit_once('/').unwrap_or(("", pointer));
    for part in parents.split('/').filter(|part| !part.is_empty()) {
        at = &mut at[part];
    }
    if value.is_null() {
        at.as_object_mut().unwrap().remove(last);
    } else {
        at[last] = value;
    }
}

fn read(object: Value) -> SearchCluster {
    serde_json::from_value(object).unwrap()
}
