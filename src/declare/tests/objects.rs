//! What is in the objects.

use serde_json::{Map, json};

use super::{config as text_of, object, planned, usual};
use crate::{CLUSTER, Cluster, Distribution, Kind, NODE_SET, Observed, Version};

#[test]
fn everything_has_our_label_and_its_owner() {
    for object in planned(&usual(), &Observed::default()).objects {
        let metadata = &object.body["metadata"];
        assert_eq!(metadata["labels"][CLUSTER], "logs", "{}", object.name);
        assert_eq!(metadata["ownerReferences"][0]["uid"], "u-1", "{}", object.name);
        assert_eq!(
            (&metadata["name"], &metadata["namespace"]),
            (&json!(object.name), &json!("search"))
        );
    }
}

#[test]
fn the_config_is_the_same_for_all_nodes_of_a_set() {
    let plan = planned(&usual(), &Observed::default());
    assert_eq!(
        text_of(&plan, "data"),
        "cluster.initial_cluster_manager_nodes: \"${INITIAL_MASTER_NODES}\"\n\
         cluster.name: \"logs\"\n\
         discovery.seed_hosts: [\"logs-nodes.search.svc\"]\n\
         http.port: 9200\n\
         network.host: \"0.0.0.0\"\n\
         network.publish_host: \"${POD_IP}\"\n\
         node.name: \"${POD_NAME}\"\n\
         node.roles: [\"data\"]\n"
    );
}

#[test]
fn what_the_declaration_says_wins_over_our_defaults_nested_or_not() {
    let mut cluster = usual();
    let config = &mut cluster.node_sets[1].config;
    config.insert("discovery".into(), json!({"seed_hosts": ["a"]}));
    config.insert("network.publish_host".into(), json!("_eth0_"));
    let plan = planned(&cluster, &Observed::default());
    let text = text_of(&plan, "data");
    assert!(text.contains("discovery: {\"seed_hosts\":[\"a\"]}\n"), "{text}");
    assert!(text.contains("network.publish_host: \"_eth0_\"\n"), "{text}");
    assert!(!text.contains("logs-nodes") && !text.contains("POD_IP"), "{text}");
}

#[test]
fn a_stateful_set_replaces_no_pod_by_itself() {
    let plan = planned(&usual(), &Observed::default());
    let spec = &object(&plan, Kind::StatefulSet, "logs-data")["spec"];
    assert_eq!(spec["updateStrategy"], json!({"type": "OnDelete"}));
    assert_eq!(spec["podManagementPolicy"], "Parallel");
    assert_eq!(spec["serviceName"], "logs-nodes");
    let labels = json!({CLUSTER: "logs", NODE_SET: "data"});
    assert_eq!(spec["selector"]["matchLabels"], labels);
    assert_eq!(spec["template"]["metadata"]["labels"], labels);
    assert_eq!(spec["volumeClaimTemplates"][0]["metadata"]["name"], "data");
    let container = &spec["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "opensearchproject/opensearch:2.19.3");
    let mut cluster = usual();
    cluster.node_sets[1].claim_retention = Some(json!({"whenScaled": "Delete"}));
    let plan = planned(&cluster, &Observed::default());
    let spec = &object(&plan, Kind::StatefulSet, "logs-data")["spec"];
    assert_eq!(spec["persistentVolumeClaimRetentionPolicy"], json!({"whenScaled": "Delete"}));
}

/// Versions that do not know the setting would not start with it.
#[test] // proves DECLARE-6
fn a_stop_of_elasticsearch_waits_for_clients_for_five_seconds() {
    let mut cluster = usual();
    let mut text = |distribution, version| {
        cluster.engine.distribution = distribution;
        cluster.engine.version = version;
        text_of(&planned(&cluster, &Observed::default()), "data")
    };
    let five = "http.shutdown_grace_period: \"5s\"\n";
    assert!(text(Distribution::Elasticsearch, Version(9, 1, 0)).contains(five));
    assert!(text(Distribution::Elasticsearch, Version(8, 9, 0)).contains(five));
    for (distribution, version) in [
        (Distribution::Elasticsearch, Version(8, 8, 2)),
        (Distribution::Elasticsearch, Version(7, 17, 29)),
        (Distribution::OpenSearch, Version(3, 2, 0)),
    ] {
        let text = text(distribution, version);
        assert!(!text.contains("shutdown_grace_period"), "{version}: {text}");
    }

    cluster.engine.distribution = Distribution::Elasticsearch;
    cluster.engine.version = Version(8, 19, 0);
    let http = json!({"shutdown_grace_period": "1m"});
    cluster.node_sets[1].config.insert("http".into(), http);
    let text = text_of(&planned(&cluster, &Observed::default()), "data");
    assert!(text.contains("http: {\"shutdown_grace_period\":\"1m\"}\n"), "{text}");
    assert!(!text.contains(five), "{text}");
}

#[test] // proves DECLARE-28
fn with_https_security_is_left_to_the_declaration() {
    for (distribution, version) in [
        (Distribution::Elasticsearch, Version(8, 19, 0)),
        (Distribution::OpenSearch, Version(2, 19, 3)),
    ] {
        let turned_off = |tls| {
            let mut cluster = usual();
            cluster.engine.distribution = distribution;
            cluster.engine.version = version;
            cluster.engine.tls = tls;
            cluster.node_sets[0].config =
                Map::from_iter([("node.roles".into(), json!(["master"]))]);
            let plan = planned(&cluster, &Observed::default());
            let set = object(&plan, Kind::StatefulSet, "logs-data");
            let variables = set["spec"]["template"]["spec"]["containers"][0]["env"].to_string();
            let off = text_of(&plan, "data").contains("xpack.security.enabled: false\n")
                || variables.contains("DISABLE_SECURITY_PLUGIN");
            let scheme = if tls { "https" } else { "http" };
            let url = format!("\"{scheme}://127.0.0.1:9200/_cluster/health\"");
            assert!(variables.contains(&url), "{variables}");
            off
        };
        assert_eq!([turned_off(false), turned_off(true)], [true, false]);
    }
}

#[test]
fn each_distribution_has_its_own_names() {
    let mut cluster = usual();
    cluster.engine.distribution = Distribution::Elasticsearch;
    cluster.engine.version = Version(8, 19, 0);
    let plan = planned(&cluster, &Observed::default());
    let text = text_of(&plan, "data");
    assert!(text.contains("cluster.initial_master_nodes: "), "{text}");
    assert!(text.contains("xpack.security.enabled: false\n"), "{text}");
    let template = &object(&plan, Kind::StatefulSet, "logs-data")["spec"]["template"];
    let container = &template["spec"]["containers"][0];
    assert_eq!(container["name"], "elasticsearch");
    let image = "docker.elastic.co/elasticsearch/elasticsearch:8.19.0";
    assert_eq!(container["image"], image);

    // Who writes anything about security, or has TLS, has decided.
    cluster.node_sets[1].config.insert("xpack.security.authc.anonymous.roles".into(), json!("a"));
    cluster.engine.image = Some("registry/search:1".into());
    let plan = planned(&cluster, &Observed::default());
    let text = text_of(&plan, "data");
    assert!(!text.contains("xpack.security.enabled"), "{text}");
    let template = &object(&plan, Kind::StatefulSet, "logs-data")["spec"]["template"];
    assert_eq!(template["spec"]["containers"][0]["image"], "registry/search:1");
    cluster.engine.distribution = Distribution::OpenSearch;
    cluster.engine.version = Version(1, 3, 20);
    let plan = planned(&cluster, &Observed::default());
    let text = text_of(&plan, "data");
    assert!(text.contains("cluster.initial_master_nodes: "), "{text}");
}

/// An open port would make a node ready before it is in its cluster, and a bad config the last good one.
#[test] // proves DECLARE-27
fn a_manager_asks_a_secured_engine_with_the_secrets_of_the_declaration() {
    let mut cluster = usual();
    cluster.engine.tls = true;
    cluster.engine.ca_secret = Some("logs-ca".into());
    cluster.engine.credentials_secret = Some("logs-user".into());
    let spec = |cluster: &Cluster| {
        let plan = planned(cluster, &Observed::default());
        object(&plan, Kind::StatefulSet, "logs-data")["spec"]["template"]["spec"].clone()
    };
    let secured = spec(&cluster);
    let container = &secured["containers"][0];
    for (name, value) in [
        ("STAYPUT_READY", "https://127.0.0.1:9200/_cluster/health"),
        ("STAYPUT_READY_AUTH", "/stayput-ready-auth"),
        ("STAYPUT_READY_CA", "/stayput-ready-ca/ca.crt"),
    ] {
        let variable = json!({"name": name, "value": value});
        assert!(container["env"].as_array().unwrap().contains(&variable), "{container:#}");
    }
    let items = json!([{"key": "ca.crt", "path": "ca.crt"}]);
    for (name, secret) in [
        ("stayput-ready-auth", json!({"secretName": "logs-user"})),
        ("stayput-ready-ca", json!({"secretName": "logs-ca", "items": items})),
    ] {
        let volume = json!({"name": name, "secret": secret});
        assert!(secured["volumes"].as_array().unwrap().contains(&volume), "{secured:#}");
        let mount = json!({"name": name, "mountPath": format!("/{name}"), "readOnly": true});
        assert!(container["volumeMounts"].as_array().unwrap().contains(&mount), "{container:#}");
    }

    // A client certificate is nothing that a manager logs in with.
    let own = json!({"name": "STAYPUT_READY", "value": "tcp://127.0.0.1:9200"});
    cluster.node_sets[1].pod_template =
        json!({"spec": {"containers": [{"name": "opensearch", "env": [own]}]}});
    let text = spec(&cluster).to_string();
    assert!(text.contains("tcp://127.0.0.1:9200") && !text.contains("stayput-ready"), "{text}");
}
