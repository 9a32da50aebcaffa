//! Routes and answers of a cluster at rest.

use serde_json::{Value, json};

use super::{ALLOCATION, Cluster, ask, get, put, settings, view};

pub(super) fn it_says_who_it_is(cluster: &mut dyn Cluster) {
    let state = view(cluster, 0);
    assert_eq!(state.names().len(), 3);
    assert_eq!(state.committed, state.ids());
    assert_eq!(state.accepted, state.ids());
    for node in 0..3 {
        assert_eq!(view(cluster, node), state, "every node sees the same");
        local(cluster, node, &state);
    }
    let id = state.id(cluster, 1);
    assert_eq!(id.len(), 22, "{id}");
    let target = format!("/_nodes/{id}/jvm?filter_path=_nodes,nodes.*.name,nodes.*.jvm.pid");
    let one = get(cluster, 0, &target);
    assert_eq!(one["_nodes"], json!({"total": 1, "successful": 1, "failed": 0}));
    assert_eq!(one["nodes"].as_object().unwrap().keys().collect::<Vec<_>>(), [id]);
    assert_eq!(one["nodes"][id]["name"], cluster.name(1));

    let columns = "full_id=true&format=json&h=id,name,node.role,master";
    let rows = get(cluster, 2, &format!("/_cat/nodes?{columns}"));
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let (id, _) = &state.nodes[row["name"].as_str().unwrap()];
        assert_eq!(row["id"], **id);
        let roles = row["node.role"].as_str().unwrap();
        assert!(roles.contains('d') && roles.contains('m'), "{roles}");
        assert_eq!(row["master"], if *id == state.master { "*" } else { "-" });
    }
    let (status, _) = cluster.ask(0, "GET", "/_no/thing/at/all", None).unwrap();
    assert_eq!(status, 400);
    let refused = ask(cluster, 0, ("POST", "/_cluster/health"), None, 405);
    assert!(refused["error"].as_str().unwrap().contains("allowed: [GET]"), "{refused}");
}

fn local(cluster: &dyn Cluster, node: usize, state: &super::View) {
    let id = state.id(cluster, node);
    let local = get(cluster, node, "/_nodes/_local/jvm,http,process");
    let info = &local["nodes"][id];
    assert_eq!(info["name"], cluster.name(node));
    let roles: Vec<&str> =
        info["roles"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
    let master = if cluster.is_elasticsearch() { "master" } else { "cluster_manager" };
    assert!(roles.contains(&"data") && roles.contains(&master), "{roles:?}");
    assert_eq!(info["build_flavor"].is_string(), cluster.is_elasticsearch());
    assert!(info["version"].as_str().unwrap().split('.').count() == 3);
    assert!(info["jvm"]["start_time_in_millis"].as_u64().unwrap() > 1_700_000_000_000);
    assert_eq!(info["jvm"]["pid"], info["process"]["id"]);
    assert!(info["http"]["publish_address"].as_str().unwrap().contains(':'));
}

pub(super) fn health_waits_and_says_so(cluster: &mut dyn Cluster) {
    let health = get(cluster, 1, "/_cluster/health?wait_for_events=languid&timeout=10s");
    let mut names: Vec<&str> = vec![
        "active_primary_shards",
        "active_shards",
        "active_shards_percent_as_number",
        "cluster_name",
        "delayed_unassigned_shards",
        "initializing_shards",
        "number_of_data_nodes",
        "number_of_in_flight_fetch",
        "number_of_nodes",
        "number_of_pending_tasks",
        "relocating_shards",
        "status",
        "task_max_waiting_in_queue_millis",
        "timed_out",
        "unassigned_shards",
    ];
    if cluster.is_elasticsearch() {
        names.push("unassigned_primary_shards");
    } else {
        names.extend(["discovered_cluster_manager", "discovered_master"]);
    }
    names.sort_unstable();
    let mut found: Vec<&String> = health.as_object().unwrap().keys().collect();
    found.sort_unstable();
    assert_eq!(found, names);
    assert_eq!((&health["status"], &health["number_of_nodes"]), (&json!("green"), &json!(3)));
    assert_eq!(health["active_shards_percent_as_number"], json!(100.0));

    for wanted in ["wait_for_nodes=4", "wait_for_nodes=%3E%3D4", "wait_for_nodes=gt(3)"] {
        let target = format!("/_cluster/health?{wanted}&timeout=0s");
        let late = ask(cluster, 0, ("GET", &target), None, 408);
        assert_eq!((&late["timed_out"], &late["status"]), (&json!(true), &json!("green")));
    }
    let missing = ask(cluster, 0, ("GET", "/_cluster/health/none?timeout=0s"), None, 408);
    assert_eq!(missing["status"], "red");
    let part = get(cluster, 0, "/_cluster/health?filter_path=status,*_of_nodes");
    assert_eq!(part, json!({"status": "green", "number_of_nodes": 3}));
}

pub(super) fn settings_come_and_go(cluster: &mut dyn Cluster) {
    let marker = r#"{"restart":"r-1","before":null}"#;
    let marked = json!({ALLOCATION: "primaries", "cluster.metadata.stayput": marker});
    let answer = put(cluster, 0, "/_cluster/settings", &json!({"persistent": marked}));
    let nested = json!({
        "routing": {"allocation": {"enable": "primaries"}}, "metadata": {"stayput": marker},
    });
    let expected =
        json!({"acknowledged": true, "persistent": {"cluster": nested}, "transient": {}});
    assert_eq!(answer, expected);
    let flat = settings(cluster, 2);
    assert_eq!(flat, json!({"persistent": marked, "transient": {}}));
    let shown = get(cluster, 1, "/_cluster/settings");
    assert_eq!(shown["persistent"], json!({"cluster": nested}));

    put(cluster, 1, "/_cluster/settings", &json!({"transient": {ALLOCATION: "all"}}));
    assert_eq!(settings(cluster, 0)["transient"], json!({ALLOCATION: "all"}));
    let restored = json!({
        "persistent": {"cluster": {"routing": {"allocation": {"enable": null}}}},
        "transient": {ALLOCATION: null},
    });
    let answer = put(cluster, 2, "/_cluster/settings", &restored);
    assert_eq!(answer, json!({"acknowledged": true, "persistent": {}, "transient": {}}));
    let left = json!({"persistent": {"cluster.metadata.stayput": marker}, "transient": {}});
    assert_eq!(settings(cluster, 0), left);
    let gone = json!({"persistent": {"cluster.metadata.stayput": null}});
    put(cluster, 0, "/_cluster/settings", &gone);

    // The texts are only the same for the same engine.
    for (body, part) in [
        (json!({"persistent": {"no.such": 1}}), "persistent setting [no.such], not recognized"),
        (json!({"persistent": {ALLOCATION: "bogus"}}), "BOGUS"),
        (json!({}), "Validation Failed: 1: no settings to update;"),
    ] {
        let refused = ask(cluster, 0, ("PUT", "/_cluster/settings"), Some(&body), 400);
        let reason = refused["error"]["reason"].as_str().unwrap();
        assert!(reason.contains(part), "{refused:#}");
        assert_eq!(refused["status"], 400);
    }
}

/// Elasticsearch keeps the records; OpenSearch takes the path as a filter for nodes.
pub(super) fn shutdown_records_are_kept(cluster: &mut dyn Cluster) {
    let id = view(cluster, 0).id(cluster, 1).to_owned();
    let target = format!("/_nodes/{id}/shutdown");
    let record = json!({"type": "restart", "reason": "r-1"});
    if !cluster.is_elasticsearch() {
        let none = get(cluster, 0, "/_nodes/shutdown");
        assert_eq!(none["nodes"], json!({}));
        assert_eq!(none["_nodes"]["total"], 0);
        ask(cluster, 0, ("PUT", &target), Some(&record), 405);
        return;
    }
    assert_eq!(get(cluster, 0, &target), json!({"nodes": []}));
    assert_eq!(put(cluster, 2, &target, &record), json!({"acknowledged": true}));
    for target in [&target, "/_nodes/shutdown"] {
        let records = get(cluster, 0, target);
        let [kept] = &records["nodes"].as_array().unwrap()[..] else { panic!("{records}") };
        let fields = (&kept["node_id"], &kept["type"], &kept["reason"], &kept["status"]);
        assert_eq!(fields, (&json!(id), &json!("RESTART"), &json!("r-1"), &json!("COMPLETE")));
        assert!(kept["shutdown_startedmillis"].is_u64());
        assert_eq!(kept["shard_migration"]["status"], "COMPLETE");
    }
    ask(cluster, 0, ("PUT", &target), Some(&json!({"type": "bogus", "reason": "r"})), 400);
    let deleted = ask(cluster, 1, ("DELETE", &target), None, 200);
    assert_eq!(deleted, json!({"acknowledged": true}));
    assert_eq!(get(cluster, 0, "/_nodes/shutdown"), json!({"nodes": []}));
}
