//! Tests as tables: a row in words, and what must come of it.

mod cases;
mod container_settings;
mod content;
mod coordinated;
mod eck;
mod environment;
mod every_field;
mod init_note;
mod laws;
mod mounted_config;
mod note;
mod operators;
mod quantity;
mod resources;
mod room;
mod run_once;
mod unwatched;
mod uses;

use serde_json::{Value, json};

use crate::{Abilities, Content, Declaration, Update, UpdateStep, compare};

/// A template as the examples have it.
fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "logs"}},
        "spec": {
            "containers": [
                {
                    "name": "opensearch",
                    "image": "registry/opensearch:2.19.2",
                    "env": [{"name": "CLUSTER", "value": "logs"}],
                    "resources": {
                        "requests": {"cpu": "500m", "memory": "1Gi"},
                        "limits": {"memory": "2Gi"}
                    },
                    "volumeMounts": [{"name": "config", "mountPath": "/config"}]
                },
                {"name": "exporter", "image": "registry/exporter:1"}
            ],
            "initContainers": [
                {"name": "sysctl", "image": "registry/tools:1"},
                {"name": "proxy", "image": "registry/proxy:1", "restartPolicy": "Always"}
            ],
            "tolerations": [{"key": "disk", "operator": "Exists"}],
            "volumes": [{"name": "config", "secret": {"secretName": "logs-config"}}]
        }
    })
}

fn update(wanted: &Value, actual: &Value) -> Update {
    with_content(wanted, &Content::default(), actual, &Content::default())
}

fn with_content(wanted: &Value, new: &Content, actual: &Value, old: &Content) -> Update {
    let wanted = Declaration { template: wanted, content: new };
    let actual = Declaration { template: actual, content: old };
    compare(wanted, actual, "opensearch", Abilities { resize: true })
}

/// The step when `change` is made to the template.
fn step_of(change: impl FnOnce(&mut Value)) -> UpdateStep {
    let mut wanted = template();
    change(&mut wanted);
    update(&wanted, &template()).step
}
