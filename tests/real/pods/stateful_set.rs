//! The StatefulSet of the nodes, and the volumes of their claims.

use std::fs;
use std::os::unix::fs::chown;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::fixture::Fixture;
use super::nodes::NODES;
use crate::support::wait::eventually;

/// Three pods of this spec. Kubernetes replaces none of them by itself.
pub(super) fn stateful_set(spec: &Value) -> Value {
    let labels = json!({ "app": "logs" });
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "name": "logs", "namespace": "search" },
        "spec": {
            "serviceName": "logs",
            "replicas": NODES.len(),
            "podManagementPolicy": "Parallel",
            "updateStrategy": { "type": "OnDelete" },
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": spec },
        },
    })
}

/// The same with a claim for the volume `data`, in place of the one that the spec has.
pub(super) fn with_claims(mut set: Value) -> Value {
    let volumes = &mut set["spec"]["template"]["spec"]["volumes"];
    volumes.as_array_mut().expect("a list").retain(|volume| volume["name"] != "data");
    set["spec"]["volumeClaimTemplates"] = json!([claim()]);
    set
}

/// The template of the claim `data`.
pub(super) fn claim() -> Value {
    json!({
        "metadata": { "name": "data" },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": { "requests": { "storage": "1Gi" } },
        },
    })
}

/// A volume for the claim of each pod: a directory of this machine, owned by the engine's user.
pub(super) fn volumes(fixture: &Fixture, pods: &[&str]) -> TempDir {
    volumes_with(fixture, "data", pods, &Value::Null)
}

/// A volume for the claim of this name of each pod, in the same way.
pub(super) fn volumes_for(fixture: &Fixture, claim: &str, pods: &[&str]) -> TempDir {
    volumes_with(fixture, claim, pods, &Value::Null)
}

/// The same, with volumes that can only be used on the Kubernetes node, as local ones.
pub(super) fn local_volumes(fixture: &Fixture, pods: &[&str]) -> TempDir {
    let label = "kubernetes.io/hostname";
    let here = json!({ "key": label, "operator": "In", "values": ["node"] });
    let required = json!({ "nodeSelectorTerms": [{ "matchExpressions": [here] }] });
    volumes_with(fixture, "data", pods, &json!({ "required": required }))
}

fn volumes_with(fixture: &Fixture, claim: &str, pods: &[&str], affinity: &Value) -> TempDir {
    let storage = tempfile::tempdir().expect("a temp dir");
    let open = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(storage.path(), open).expect("permissions");
    for name in pods {
        let own = storage.path().join(name);
        fs::create_dir(&own).expect("a directory");
        chown(&own, Some(1000), Some(1000)).expect("root may");
        fixture.admin().apply(&json!({
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": { "name": name },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": { "storage": "2Gi" },
                "claimRef": { "namespace": "search", "name": format!("{claim}-{name}") },
                "hostPath": { "path": own, "type": "Directory" },
                "nodeAffinity": affinity,
            },
        }));
    }
    storage
}

/// Gives the set another template.
pub(super) fn edit(fixture: &Fixture, template: &Value) {
    let patch = json!([{ "op": "replace", "path": "/spec/template", "value": template }]);
    let patch = patch.to_string();
    fixture.run(&["patch", "statefulset", "logs", "--type=json", "--patch", &patch]);
}

/// The set's status, once its controller has seen the last edit.
pub(super) fn status(fixture: &Fixture) -> Value {
    eventually("the controller has seen the set", || {
        let set = fixture.read("statefulsets/logs");
        let seen = set["status"]["observedGeneration"] == set["metadata"]["generation"];
        seen.then(|| set["status"].clone())
    })
}

/// Waits until the set's controller counts all pods as updated.
pub(super) fn until_updated(fixture: &Fixture) {
    status(fixture);
    let all = format!("--for=jsonpath={{.status.updatedReplicas}}={}", NODES.len());
    fixture.run(&["wait", "statefulset/logs", &all, "--timeout=600s"]);
}
