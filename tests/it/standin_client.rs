//! The shipped engine client with a cluster of stand-in engines: it reads them like real engines.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use stayput_engine::{
    Access, Allocation, Color, Distribution, Endpoint, EngineClient, EngineError, Flush,
    RecordKind, RecordStatus, ShardState, Voting, unreplicated,
};

use crate::support::standin_cluster::Three;
use stayput_conformance::engine::Cluster;

const BOUND: Duration = Duration::from_secs(20);
const MARK: &str = r#"{"restart":"r-1","before":null}"#;

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

fn story(settings: &str, distribution: Distribution, version: &str) {
    let mut cluster = Three::started(settings);
    for (index, replicas) in [("docs", 1), ("single", 0)] {
        let settings = json!({"settings": {"number_of_replicas": replicas}});
        let target = format!("/{index}?wait_for_active_shards=all");
        assert_eq!(cluster.ask(0, "PUT", &target, Some(&settings)).expect("an answer").0, 200);
    }
    let endpoints = cluster.hosts().map(|host| Endpoint { host, port: 9200 });
    let client = EngineClient::new(&endpoints, &Access::Plain, BOUND).expect("a client");
    let engine = wait(client.identify()).expect("an engine");
    assert_eq!((engine.distribution, engine.version.to_string()), (distribution, version.into()));
    assert_eq!(engine.has_node_shutdown, distribution == Distribution::Elasticsearch);
    assert_eq!((engine.cluster_name.as_str(), engine.node_name.as_str()), ("three", "n0"));
    let health = wait(client.health()).expect("health");
    assert_eq!((health.color, health.data_nodes, health.timed_out), (Color::Green, 3, false));

    let topology = wait(client.topology(&engine, None)).expect("a topology");
    let ids: BTreeSet<String> = topology.nodes.iter().map(|node| node.id.clone()).collect();
    assert_eq!(topology.cluster_uuid, engine.cluster_uuid);
    let known = |node: &stayput_engine::Node| {
        node.version == Some(engine.version)
            && node.jvm_start_ms.is_some()
            && node.roles.as_ref().is_some_and(|roles| roles.contains("data"))
    };
    assert!(topology.nodes.len() == 3 && topology.nodes.iter().all(known), "{topology:#?}");
    let Voting::Configurations { committed, accepted, .. } = topology.voting else {
        panic!("{:?}", topology.voting)
    };
    assert_eq!((&committed, &accepted), (&ids, &ids));
    assert!(topology.shards.iter().all(|shard| shard.state == ShardState::Started));
    assert_eq!(topology.shards.len(), 3);
    assert_eq!(unreplicated(&topology.shards), ["single".into()].into());
    let members = wait(client.members()).expect("members");
    assert_eq!(members.elected_master, topology.elected_master);

    let unset = Allocation::default();
    wait(client.tighten(&unset, "primaries", MARK)).expect("tightened");
    let marked = Allocation {
        persistent: Some("primaries".into()),
        marker: Some(MARK.into()),
        ..Allocation::default()
    };
    assert_eq!(wait(client.allocation(&engine)).expect("settings"), marked);
    wait(client.restore(&unset)).expect("restored");
    assert_eq!(wait(client.allocation(&engine)).expect("settings"), unset);
    let flush = wait(client.flush(&engine, BOUND));
    assert!(matches!(flush, Flush::Done { total: 3, successful: 3, failed: 0, .. }), "{flush:?}");
    if engine.has_node_shutdown {
        let node = &members.nodes[1].id;
        wait(client.put_restart_record(node, "r-1", BOUND)).expect("a record");
        let records = wait(client.shutdown_records()).expect("records");
        let seen = (records[0].kind, records[0].status, &records[0].node_id);
        assert_eq!(seen, (RecordKind::Restart, RecordStatus::Complete, node));
        wait(client.delete_record(node)).expect("deleted");
        wait(client.delete_record(node)).expect("gone as well");
    }

    cluster.stop(0);
    cluster.stop(1);
    // The engine waits for a master for three quarters of it, and then has the rest for its refusal.
    let short = EngineClient::new(&endpoints, &Access::Plain, Duration::from_secs(8));
    let short = short.expect("a client");
    for refused in [wait(short.members()).err(), wait(short.health()).err()] {
        assert!(matches!(refused, Some(EngineError::Refused { status: 503, .. })), "{refused:?}");
    }
    assert_eq!(wait(client.identify()).expect("an engine").node_name, "n2");
}

#[test]
fn opensearch() {
    story("", Distribution::OpenSearch, "2.19.3");
}

#[test]
fn elasticsearch() {
    story("standin.distribution: elasticsearch", Distribution::Elasticsearch, "8.19.0");
}
