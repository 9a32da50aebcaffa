//! The StatefulSet, its volumes and what it reads.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::pods::bare::pod;
use crate::pods::fixture::Fixture;
use crate::pods::nodes::NODES;
use crate::support::wait::eventually;

/// A volume for the claim of each pod: a directory of this machine.
pub(super) fn volumes(fixture: &Fixture, storage: &TempDir) {
    for name in NODES {
        fixture.admin().apply(&json!({
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": { "name": name },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": { "storage": "1Gi" },
                "claimRef": { "namespace": "search", "name": format!("data-{name}") },
                "hostPath": { "path": storage.path().join(name), "type": "Directory" },
            },
        }));
    }
}

/// The ConfigMap that a variable of the engine is from.
pub(super) fn tier(fixture: &Fixture, tier: &str) {
    fixture.admin().apply(&json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "variables", "namespace": "search" },
        "data": { "tier": tier },
    }));
}

/// Three nodes, their config and the Service. Their set replaces no pod by itself.
pub(super) fn stateful_set(fixture: &Fixture) -> Value {
    let config = format!(
        "cluster.name: logs\nnode.name: ${{NODE_NAME}}\nnetwork.host: 0.0.0.0\n\
         discovery.seed_hosts: [{}]\ncluster.initial_cluster_manager_nodes: {}\n\
         path.data: /data\nnode.attr.tier: ${{TIER}}\n",
        fixture.seeds(),
        NODES.join(",")
    );
    fixture.secret("logs-config", &[("opensearch.yml", &config)]);
    fixture.admin().apply(&crate::pods::figures::service());
    let pod = pod(fixture, "logs");
    let labels = BTreeMap::from([("app", "logs")]);
    let mut spec = pod["spec"].clone();
    let variables = spec["containers"][0]["env"].as_array_mut().expect("a list");
    let name = json!({ "fieldRef": { "fieldPath": "metadata.name" } });
    let tier = json!({ "configMapKeyRef": { "name": "variables", "key": "tier" } });
    for (variable, from) in [("NODE_NAME", name), ("TIER", tier)] {
        variables.push(json!({ "name": variable, "valueFrom": from }));
    }
    let volumes = spec["volumes"].as_array_mut().expect("a list");
    volumes.retain(|volume| volume["name"] != "data");
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
            "volumeClaimTemplates": [{
                "metadata": { "name": "data" },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "",
                    "resources": { "requests": { "storage": "1Gi" } },
                },
            }],
        },
    })
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
        let set = fixture.json(&["get", "statefulset", "logs"]);
        let seen = set["status"]["observedGeneration"] == set["metadata"]["generation"];
        seen.then(|| set["status"].clone())
    })
}
