//! Documents: stored in every copy, found through every node.

use serde_json::json;

use super::{
    ALLOCATION, Cluster, ask, await_health, create_index, delete_index, get, primary_and_replica,
    put, view,
};

pub(super) fn what_is_acknowledged_is_found(cluster: &mut dyn Cluster) {
    create_index(cluster, "docs", 2, 1);
    for node in 0..3 {
        let target = format!("/docs/_doc/{node}");
        let made = ask(cluster, node, ("PUT", &target), Some(&json!({"node": node})), 201);
        assert_eq!((&made["result"], &made["_version"]), (&json!("created"), &json!(1)));
        assert_eq!(made["_shards"], json!({"total": 2, "successful": 2, "failed": 0}));
        let again = ask(cluster, node, ("POST", &target), Some(&json!({"node": node})), 200);
        assert_eq!((&again["result"], &again["_version"]), (&json!("updated"), &json!(2)));
    }
    let drawn = ask(cluster, 0, ("POST", "/docs/_doc"), Some(&json!({"node": 3})), 201);
    let drawn = format!("/docs/_doc/{}", drawn["_id"].as_str().unwrap());
    for node in 0..3 {
        assert_eq!(get(cluster, node, "/docs/_doc/1")["_source"], json!({"node": 1}));
        assert_eq!(get(cluster, node, &drawn)["_source"], json!({"node": 3}));
        let none = ask(cluster, node, ("GET", "/docs/_doc/none"), None, 404);
        assert_eq!(none, json!({"_index": "docs", "_id": "none", "found": false}));
    }
    let refreshed = ask(cluster, 0, ("POST", "/docs/_refresh"), None, 200);
    let all = json!({"_shards": {"total": 4, "successful": 4, "failed": 0}});
    assert_eq!(refreshed, all);
    assert_eq!(ask(cluster, 1, ("POST", "/docs/_flush"), None, 200), all);
    assert_eq!(ask(cluster, 1, ("POST", "/_flush"), None, 200), all);
    for node in 0..3 {
        let counted = get(cluster, node, "/docs/_count");
        let shards = json!({"total": 2, "successful": 2, "skipped": 0, "failed": 0});
        assert_eq!(counted, json!({"count": 4, "_shards": shards}));
        let found = get(cluster, node, "/docs/_search?size=2");
        assert_eq!(found["hits"]["total"], json!({"value": 4, "relation": "eq"}));
        assert_eq!(found["hits"]["hits"].as_array().unwrap().len(), 2);
    }
    let again = ask(cluster, 0, ("PUT", "/docs"), Some(&json!({})), 400);
    assert_eq!(again["error"]["type"], "resource_already_exists_exception");
    delete_index(cluster, "docs");
    let gone = ask(cluster, 2, ("GET", "/docs/_doc/1"), None, 404);
    assert_eq!(gone["error"]["type"], "index_not_found_exception");
    assert_eq!(gone["error"]["index"], "docs");
}

/// A document that is written while a replica becomes the primary is kept, and the node that was
/// stopped has it when it is back.
pub(super) fn a_write_waits_for_its_primary(cluster: &mut dyn Cluster) {
    create_index(cluster, "docs", 1, 1);
    let (primary, replica) = primary_and_replica(cluster, 0, "docs");
    ask(cluster, 0, ("PUT", "/docs/_doc/before"), Some(&json!({"n": 1})), 201);
    put(cluster, 0, "/_cluster/settings", &json!({"persistent": {ALLOCATION: "primaries"}}));
    cluster.stop(primary);
    let written = ask(cluster, replica, ("PUT", "/docs/_doc/during"), Some(&json!({"n": 2})), 201);
    assert_eq!(written["_shards"], json!({"total": 2, "successful": 1, "failed": 0}));
    let term = written["_primary_term"].as_u64();
    assert!(term > Some(1), "a new primary has a new term: {written}");
    cluster.start(primary);
    await_health(cluster, primary, "wait_for_nodes=3");
    put(cluster, 0, "/_cluster/settings", &json!({"persistent": {ALLOCATION: null}}));
    await_health(cluster, 0, "wait_for_status=green");
    // Now the other node is stopped: only the one that came back can answer.
    cluster.stop(replica);
    await_health(cluster, primary, "wait_for_nodes=2");
    for id in ["before", "during"] {
        get(cluster, primary, &format!("/docs/_doc/{id}"));
    }
    ask(cluster, primary, ("POST", "/docs/_refresh"), None, 200);
    assert_eq!(get(cluster, primary, "/docs/_count")["count"], 2);
    cluster.start(replica);
    await_health(cluster, 0, "wait_for_nodes=3&wait_for_status=green");
    delete_index(cluster, "docs");
    assert_eq!(view(cluster, 0).names().len(), 3);
}
