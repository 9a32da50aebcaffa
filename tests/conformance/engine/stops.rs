//! Stopped nodes, and their effects.

use serde_json::json;

use super::{
    ALLOCATION, Cluster, ask, await_health, copies, create_index, delete_index, eventually, get,
    health, put, view,
};

pub(super) fn an_only_copy_makes_the_cluster_red(cluster: &mut dyn Cluster) {
    create_index(cluster, "solo", 1, 0);
    ask(cluster, 0, ("PUT", "/solo/_doc/1"), Some(&json!({"a": 1})), 201);
    put(cluster, 0, "/_cluster/settings", &json!({"persistent": {ALLOCATION: "primaries"}}));
    let rows = copies(cluster, 0, "solo");
    let owner = rows[0].3.clone().expect("it has a place");
    let owner = (0..3).find(|node| cluster.name(*node) == owner).unwrap();
    let other = (owner + 1) % 3;
    cluster.stop(owner);
    await_health(cluster, other, "wait_for_nodes=2");
    let red = health(cluster, other);
    assert_eq!((&red["status"], &red["unassigned_shards"]), (&json!("red"), &json!(1)));
    let text = |text: &str| text.to_owned();
    let lost = [(text("0"), text("p"), text("UNASSIGNED"), None)];
    assert_eq!(copies(cluster, other, "solo"), lost);
    let refused = ask(cluster, other, ("GET", "/solo/_count"), None, 503);
    assert_eq!(refused["error"]["type"], "search_phase_execution_exception");
    let document = json!({"a": 2});
    let late = ("PUT", "/solo/_doc/2?timeout=500ms");
    let refused = ask(cluster, other, late, Some(&document), 503);
    assert_eq!(refused["error"]["type"], "unavailable_shards_exception");
    cluster.start(owner);
    await_health(cluster, other, "wait_for_nodes=3&wait_for_status=green");
    assert_eq!(get(cluster, other, "/solo/_doc/1")["found"], true);
    put(cluster, 0, "/_cluster/settings", &json!({"persistent": {ALLOCATION: null}}));
    delete_index(cluster, "solo");
}

pub(super) fn without_a_majority_there_is_no_master(cluster: &mut dyn Cluster) {
    let before = view(cluster, 0);
    cluster.stop(1);
    cluster.stop(2);
    let kind = if cluster.is_elasticsearch() {
        "master_not_discovered_exception"
    } else {
        "cluster_manager_not_discovered_exception"
    };
    let alone = eventually("the master is gone", || {
        let (status, body) = cluster.ask(0, "GET", "/_cluster/health?timeout=100ms", None)?;
        (status == 503).then_some(body)
    });
    assert_eq!((&alone["error"]["type"], &alone["error"]["reason"]), (&json!(kind), &json!(null)));
    for target in ["/_cluster/state/nodes", "/_cluster/settings", "/_cat/nodes", "/_cat/shards"] {
        let target = format!("{target}?master_timeout=100ms");
        let refused = ask(cluster, 0, ("GET", &target), None, 503);
        assert_eq!(refused["error"]["type"], kind, "{target}");
    }
    let body = json!({"persistent": {ALLOCATION: "primaries"}});
    let target = "/_cluster/settings?master_timeout=100ms";
    let refused = ask(cluster, 0, ("PUT", target), Some(&body), 503);
    assert_eq!(refused["error"]["type"], kind);
    let local = get(cluster, 0, "/_cluster/health?local=true");
    assert_eq!(local["status"], "red");
    let state = get(cluster, 0, "/_cluster/state/master_node,nodes?local=true");
    assert_eq!(state["master_node"], json!(null));
    assert_eq!(state["cluster_uuid"], before.uuid);
    let reached = get(cluster, 0, "/_nodes/_all/jvm?filter_path=nodes.*.name");
    let id = before.id(cluster, 0);
    assert_eq!(reached, json!({"nodes": {id: {"name": cluster.name(0)}}}));

    cluster.start(1);
    await_health(cluster, 0, "wait_for_nodes=2");
    let after = view(cluster, 0);
    assert_eq!((&after.uuid, &after.committed), (&before.uuid, &before.committed));
    cluster.start(2);
    await_health(cluster, 0, "wait_for_nodes=3");
}

/// After the delay another node gets the copy.
pub(super) fn a_late_node_is_not_waited_for(cluster: &mut dyn Cluster) {
    create_index(cluster, "docs", 1, 1);
    ask(cluster, 0, ("PUT", "/docs/_doc/1"), Some(&json!({"a": 1})), 201);
    let delay = json!({"settings": {"index.unassigned.node_left.delayed_timeout": "100ms"}});
    assert_eq!(put(cluster, 0, "/docs/_settings", &delay), json!({"acknowledged": true}));
    let (gone, other) = super::primary_and_replica(cluster, 0, "docs");
    cluster.stop(gone);
    await_health(cluster, other, "wait_for_nodes=2");
    let green = await_health(cluster, other, "wait_for_status=green");
    assert_eq!((&green["active_shards"], &green["number_of_nodes"]), (&json!(2), &json!(2)));
    cluster.start(gone);
    await_health(cluster, 0, "wait_for_nodes=3&wait_for_no_relocating_shards=true");
    await_health(cluster, 0, "wait_for_status=green");
    assert_eq!(get(cluster, 0, "/docs/_doc/1")["found"], true);
    delete_index(cluster, "docs");
}
