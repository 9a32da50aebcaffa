//! Containers, and the settings that they give their engine.

use serde_json::{Value, json};

use crate::{Settings, container_settings};

fn of(container: &Value) -> Vec<String> {
    let mut container = container.clone();
    container["name"] = "engine".into();
    let template = json!({"spec": {"containers": [{"name": "other"}, container]}});
    let found: Settings = container_settings(&template, "engine");
    found.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}

#[test] // proves UPDATE-76
fn each_way_to_give_a_setting_is_read() {
    let tls = "xpack.security.transport.ssl.enabled";
    let env = |name: &str, value: &str| json!({"env": [{"name": name, "value": value}]});
    for (container, expected) in [
        (env("cluster.name", "logs"), "cluster.name=logs"),
        (env("ES_SETTING_CLUSTER_NAME", "logs"), "cluster.name=logs"),
        (
            env("ES_SETTING_XPACK_SECURITY_FIPS__MODE_ENABLED", "true"),
            "xpack.security.fips_mode.enabled=true",
        ),
        (env("DISABLE_SECURITY_PLUGIN", "true"), "plugins.security.disabled=true"),
        (env("OPENSEARCH_CLUSTER_NAME", "logs"), "cluster.name=logs"),
        (json!({"args": ["-Ecluster.name=logs"]}), "cluster.name=logs"),
        (json!({"args": ["-E", "discovery.type=single-node"]}), "discovery.type=single-node"),
        (
            json!({"command": ["sh", "-c", format!("bin/elasticsearch -E '{tls}=true'")]}),
            "xpack.security.transport.ssl.enabled=true",
        ),
    ] {
        assert_eq!(of(&container), [expected], "{container}");
    }
}

#[test]
fn what_is_not_known_or_decides_nothing_is_left_out() {
    for container in [
        json!({"env": [{"name": "node.name", "value": "a"}, {"name": "HOME", "value": "/"}]}),
        json!({"env": [{"name": "cluster.name", "valueFrom": {"fieldRef": {}}}]}),
        json!({"env": [{"name": "cluster.name", "value": "$(NAME)"}]}),
        json!({"args": ["-Ecluster.name=${NAME}", "-Enode.attr.zone=a"]}),
    ] {
        assert!(of(&container).is_empty(), "{container}");
    }
}
