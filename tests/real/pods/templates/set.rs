//! The nodes' template, and what it reads.

use serde_json::{Value, json};

use crate::pods::bare::pod;
use crate::pods::fixture::Fixture;
use crate::pods::nodes::NODES;
use crate::pods::stateful_set::{stateful_set, with_claims};

/// The ConfigMap that the engine's container reads when it is started: a variable, and a file
/// mounted by `subPath`. It is written once: one that is changed a second before the containers are
/// started may not be what they have, so it is not noted.
pub(super) fn read_at_start(fixture: &Fixture) {
    fixture.admin().apply(&json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "read-at-start", "namespace": "search" },
        "data": { "tier": "hot", "synonyms": "fast, quick" },
    }));
}

/// Changes a key of it.
pub(super) fn change_read_at_start(fixture: &Fixture, key: &str, value: &str) {
    let patch = json!({ "data": { key: value } }).to_string();
    fixture.run(&["patch", "configmap", "read-at-start", "--type=merge", "--patch", &patch]);
}

/// Writes the config of the nodes; `round` is an attribute of each.
pub(super) fn configure(fixture: &Fixture, round: &str) {
    let config = format!(
        "cluster.name: logs\nnode.name: ${{NODE_NAME}}\nnetwork.host: 0.0.0.0\n\
         discovery.seed_hosts: [{}]\ncluster.initial_cluster_manager_nodes: {}\n\
         path.data: /data\nnode.attr.tier: ${{TIER}}\nnode.attr.round: \"{round}\"\n",
        fixture.seeds(),
        NODES.join(",")
    );
    fixture.secret("logs-config", &[("opensearch.yml", &config)]);
}

/// Three nodes with claims, their config and the Service.
pub(super) fn make(fixture: &Fixture) -> Value {
    configure(fixture, "0");
    fixture.admin().apply(&crate::pods::clients::service());
    let mut spec = pod(fixture, "logs")["spec"].clone();
    let container = &mut spec["containers"][0];
    container["resources"] = json!({
        "requests": { "cpu": "50m", "memory": "64Mi" },
        "limits": { "memory": "64Mi" },
    });
    let variables = container["env"].as_array_mut().expect("a list");
    let name = json!({ "fieldRef": { "fieldPath": "metadata.name" } });
    let tier = json!({ "configMapKeyRef": { "name": "read-at-start", "key": "tier" } });
    for (variable, from) in [("NODE_NAME", name), ("TIER", tier)] {
        variables.push(json!({ "name": variable, "valueFrom": from }));
    }
    container["volumeMounts"].as_array_mut().expect("a list").push(json!({
        "name": "read-at-start", "mountPath": "/words/synonyms", "subPath": "synonyms",
    }));
    spec["volumes"].as_array_mut().expect("a list").push(json!({
        "name": "read-at-start", "configMap": { "name": "read-at-start" },
    }));
    let set = with_claims(stateful_set(&spec));
    fixture.admin().apply(&set);
    set["spec"]["template"].clone()
}
