//! Snapshots that are being taken, read from recorded answers.

use super::cluster::topology_of;
use super::*;
use crate::topology;

#[test] // proves UPDATE-38
fn the_node_whose_shards_are_being_read_has_the_snapshot() {
    for engine in [OPENSEARCH_2, ELASTICSEARCH_8] {
        let answer = answer_to(&topology::state_call(), engine, "state_running_snapshot");
        let nodes = topology::parse(&answer, None).expect("a topology").nodes;
        let [node] = &nodes[..] else { panic!("{engine}: one node was recorded") };
        let running = node.snapshot.as_ref().expect("it is being read");
        assert_eq!((running.name.as_str(), running.shards), ("nightly:friday", 2), "{engine}");
        assert!(running.since.0 > 1_700_000_000_000, "{engine}");
    }
}

#[test]
fn without_a_snapshot_no_node_has_one() {
    for engine in ALL {
        let topology = topology_of(engine, "state");
        assert!(topology.nodes.iter().all(|node| node.snapshot.is_none()), "{engine}");
    }
}

#[test] // proves UPDATE-38
fn only_shards_that_are_not_read_yet_count_and_only_on_their_node() {
    let body = r#"{"version": 7, "metadata": {"cluster_coordination":
        {"last_committed_config": ["a"], "last_accepted_config": ["a"]}}, "nodes": {
        "a": {"name": "logs-0", "ephemeral_id": "e0", "transport_address": "10.0.0.1:9300"},
        "b": {"name": "logs-1", "ephemeral_id": "e1", "transport_address": "10.0.0.2:9300"},
        "c": {"name": "logs-2", "ephemeral_id": "e2", "transport_address": "10.0.0.3:9300"}},
        "snapshots": {"snapshots": [
        {"repository": "nightly", "snapshot": "one", "start_time_millis": 1000, "shards": [
            {"state": "INIT", "node": "a"}, {"state": "WAITING", "node": "a"},
            {"state": "SUCCESS", "node": "b"}, {"state": "ABORTED", "node": "b"},
            {"state": "MISSING"}, {"state": "INIT", "node": "c"}]},
        {"repository": "nightly", "snapshot": "two", "start_time_millis": 2000, "shards": [
            {"state": "QUEUED"}, {"state": "PAUSED_FOR_NODE_REMOVAL", "node": "b"},
            {"state": "INIT", "node": "c"}]},
        {"repository": "weekly", "snapshot": "three", "start_time_millis": 3000}]}}"#;
    let nodes = topology::parse(&made_up(200, body), None).expect("a topology").nodes;
    let found = |name: &str| {
        let node = nodes.iter().find(|node| node.name == name).expect("a node");
        node.snapshot.as_ref().map(|running| (running.name.as_str(), running.shards))
    };
    assert_eq!(found("logs-0"), Some(("nightly:one", 2)));
    assert_eq!(found("logs-1"), None);
    assert_eq!(found("logs-2"), Some(("nightly:two", 1)));
}
