//! Restarts of one node, of the master and of all nodes, as the other nodes see them.

use serde_json::{Value, json};

use super::{
    ALLOCATION, Cluster, ask, await_health, copies, create_index, delete_index, eventually, get,
    health, primary_and_replica, put, settings, view,
};

/// Like a rolling restart: allocation to primaries, flush, stop, start, allocation restored.
pub(super) fn a_node_is_restarted(cluster: &mut dyn Cluster) {
    create_index(cluster, "docs", 1, 1);
    ask(cluster, 0, ("PUT", "/docs/_doc/1"), Some(&json!({"a": 1})), 201);
    let before = view(cluster, 0);
    let (primary, replica) = primary_and_replica(cluster, 0, "docs");
    put(cluster, 0, "/_cluster/settings", &json!({"persistent": {ALLOCATION: "primaries"}}));
    let flushed = ask(cluster, 0, ("POST", "/_flush"), None, 200);
    assert_eq!(flushed["_shards"], json!({"total": 2, "successful": 2, "failed": 0}));

    cluster.stop(primary);
    let names = [cluster.name(primary), cluster.name(replica)];
    eventually("the node is off the list", || {
        let state = view(cluster, replica);
        (state.names().len() == 2 && !state.names().contains(&names[0].as_str())).then_some(())
    });
    let down = await_health(cluster, replica, "wait_for_status=yellow");
    assert_eq!((&down["status"], &down["number_of_nodes"]), (&json!("yellow"), &json!(2)));
    let shards = (&down["active_shards"], &down["unassigned_shards"], &down["initializing_shards"]);
    assert_eq!(shards, (&json!(1), &json!(1), &json!(0)));
    assert_eq!(down["delayed_unassigned_shards"], 1);
    let text = |text: &str| text.to_owned();
    let promoted = (text("0"), text("p"), text("STARTED"), Some(names[1].clone()));
    let waiting = (text("0"), text("r"), text("UNASSIGNED"), None);
    assert_eq!(copies(cluster, replica, "docs"), [promoted.clone(), waiting.clone()]);
    let reason = "/_cat/shards/docs?format=json&h=prirep,unassigned.reason";
    let rows = get(cluster, replica, reason);
    assert!(
        rows.as_array()
            .unwrap()
            .contains(&json!({"prirep": "r", "unassigned.reason": "NODE_LEFT"})),
        "{rows}"
    );

    cluster.start(primary);
    await_health(cluster, replica, "wait_for_nodes=3");
    let after = view(cluster, replica);
    assert_eq!(after.ids(), before.ids());
    for node in 0..3 {
        let same = after.ephemeral_id(cluster, node) == before.ephemeral_id(cluster, node);
        assert_eq!(same, node != primary, "{before:?} {after:?}");
    }
    assert_eq!((&after.uuid, &after.committed), (&before.uuid, &before.committed));
    // The node is back, but still no copy may be allocated.
    assert_eq!(health(cluster, replica)["unassigned_shards"], 1);
    assert_eq!(copies(cluster, replica, "docs"), [promoted, waiting]);
    put(cluster, 0, "/_cluster/settings", &json!({"persistent": {ALLOCATION: null}}));
    let green = await_health(cluster, 0, "wait_for_status=green");
    assert_eq!(
        (&green["active_shards"], &green["delayed_unassigned_shards"]),
        (&json!(2), &json!(0))
    );
    assert_eq!(primary_and_replica(cluster, 0, "docs"), (replica, primary));
    delete_index(cluster, "docs");
}

pub(super) fn the_master_is_restarted(cluster: &mut dyn Cluster) {
    let before = view(cluster, 0);
    let master = before.master(cluster);
    let other = (master + 1) % 3;
    cluster.stop(master);
    let during = eventually("there is another master", || {
        let (status, _) = cluster.ask(other, "GET", "/_cluster/health?timeout=1s", None)?;
        let state = (status == 200).then(|| view(cluster, other))?;
        (state.master != before.master && state.names().len() == 2).then_some(state)
    });
    assert!(during.term > before.term, "{before:?} {during:?}");
    // Two of three still are a majority; the stopped node keeps its vote.
    assert_eq!(during.committed, before.ids());
    cluster.start(master);
    await_health(cluster, other, "wait_for_nodes=3");
    let after = view(cluster, other);
    assert_eq!((&after.master, after.term), (&during.master, during.term));
    assert_eq!((after.ids(), &after.committed), (before.ids(), &before.committed));
}

/// Like a coordinated restart.
pub(super) fn the_whole_cluster_is_restarted(cluster: &mut dyn Cluster) {
    create_index(cluster, "docs", 2, 1);
    for id in 0..10 {
        ask(cluster, id % 3, ("PUT", &format!("/docs/_doc/{id}")), Some(&json!({"n": id})), 201);
    }
    let before = view(cluster, 0);
    let kept = json!({ALLOCATION: "primaries", "cluster.metadata.stayput": "r-1"});
    put(cluster, 0, "/_cluster/settings", &json!({"persistent": kept}));
    ask(cluster, 0, ("POST", "/_flush"), None, 200);
    for node in 0..3 {
        cluster.stop(node);
    }
    for node in 0..3 {
        assert_eq!(cluster.ask(node, "GET", "/", None), None, "a stopped node answers");
    }
    for node in 0..3 {
        cluster.start(node);
    }
    await_health(cluster, 0, "wait_for_nodes=3");
    await_health(cluster, 0, "wait_for_status=yellow");
    let after = view(cluster, 0);
    assert_eq!((&after.uuid, after.ids()), (&before.uuid, before.ids()));
    assert_eq!(after.committed, before.committed);
    assert!(after.term > before.term);
    for node in 0..3 {
        assert_ne!(after.ephemeral_id(cluster, node), before.ephemeral_id(cluster, node));
    }
    assert_eq!(settings(cluster, 1), json!({"persistent": kept, "transient": {}}));
    let none = json!({ALLOCATION: null, "cluster.metadata.stayput": null});
    put(cluster, 0, "/_cluster/settings", &json!({"persistent": none}));
    await_health(cluster, 0, "wait_for_status=green");
    ask(cluster, 0, ("POST", "/docs/_refresh"), None, 200);
    for node in 0..3 {
        assert_eq!(get(cluster, node, "/docs/_count")["count"], 10);
    }
    let found = |id: &usize| {
        let document: Value = get(cluster, 2, &format!("/docs/_doc/{id}"));
        document["_source"] == json!({"n": id})
    };
    assert_eq!((0..10).filter(found).count(), 10);
    delete_index(cluster, "docs");
}
