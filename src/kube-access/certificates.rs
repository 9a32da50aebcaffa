//! The Secrets with the managers' certificates, and the ConfigMap with the apiserver's keys: how they are
//! read and written. `stayput_certificates` decides what to write. Nothing in here does I/O: `kubectl stayput
//! init` and the controller read and write.

mod key_set;
mod role;
mod secrets;

pub use key_set::{DISCOVERY_PATH, KEY_SET_PATH, held, key_set_object, published};
pub use role::{cluster_role_binding, role, role_binding};
pub use secrets::{Change, Secrets};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use stayput_certificates::names::MANAGED_BY;

/// True if stayput made the object, and so may change it.
pub fn is_ours(metadata: &ObjectMeta) -> bool {
    let (label, value) = MANAGED_BY;
    metadata.labels.as_ref().and_then(|labels| labels.get(label)).is_some_and(|is| is == value)
}

/// Metadata of a new object.
fn metadata(name: &str) -> Value {
    let (label, value) = MANAGED_BY;
    json!({ "name": name, "labels": { label: value } })
}

/// The part of a merge patch that ties it to the object as it was read: uid and version.
pub fn precondition(metadata: &ObjectMeta) -> Value {
    json!({ "uid": metadata.uid, "resourceVersion": metadata.resource_version })
}
