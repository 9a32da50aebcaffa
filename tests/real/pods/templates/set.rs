//! The nodes' template and config.

use serde_json::{Value, json};

use crate::pods::bare::pod;
use crate::pods::fixture::Fixture;
use crate::pods::nodes::NODES;
use crate::pods::stateful_set::{stateful_set, with_claims};

/// Writes the config of the nodes; `round` is an attribute of each.
pub(super) fn configure(fixture: &Fixture, round: &str) {
    let config = format!(
        "cluster.name: logs\nnode.name: ${{NODE_NAME}}\nnetwork.host: 0.0.0.0\n\
         discovery.seed_hosts: [{}]\ncluster.initial_cluster_manager_nodes: {}\n\
         path.data: /data\nnode.attr.round: \"{round}\"\n",
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
    variables.push(json!({ "name": "NODE_NAME", "valueFrom": name }));
    let set = with_claims(stateful_set(&spec));
    fixture.admin().apply(&set);
    set["spec"]["template"].clone()
}
