//! An engine whose replica starts between two answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::observe::engine::tests::served;
use stayput_engine::{Access, Endpoint, ShardState};

/// Only nodes and settings are answered.
const NEVER: &str = "never";
/// The health is not answered.
const UNTOLD: &str = "untold";
/// It is green, and what each node says of itself is not answered.
const SILENT: &str = "green, and nodes are silent";

fn health_body(color: &str) -> Value {
    json!({
        "cluster_name": "logs", "status": color, "timed_out": false,
        "number_of_nodes": 2, "number_of_data_nodes": 2, "active_primary_shards": 1,
        "active_shards": 2, "relocating_shards": 0, "initializing_shards": 0,
        "unassigned_shards": 0, "delayed_unassigned_shards": 0,
        "number_of_pending_tasks": 0, "number_of_in_flight_fetch": 0,
    })
}

pub(crate) fn health_of(color: &str) -> Health {
    serde_json::from_value(health_body(color)).expect("a health")
}

pub(crate) fn answer(target: &str, color: &str, starts: bool, reads: &AtomicU64) -> Value {
    if target.starts_with("/_cluster/health") {
        return health_body(color);
    }
    if target.starts_with("/_cluster/state/routing_table") {
        let replica = if reads.fetch_add(1, Ordering::SeqCst) > 0 && starts {
            "STARTED"
        } else {
            "INITIALIZING"
        };
        let copy =
            |state, node, primary| json!({ "state": state, "primary": primary, "node": node });
        let copies = json!([copy("STARTED", "a", true), copy(replica, "b", false)]);
        return json!({ "routing_table": { "indices": { "docs": { "shards": { "0": copies } } } } });
    }
    if target.starts_with("/_cluster/state/master_node") {
        return json!({ "cluster_manager_node": "a" });
    }
    if target.starts_with("/_cluster/state/version,") {
        let node = |name| json!({ "name": name, "ephemeral_id": name, "transport_address": "127.0.0.1:9300" });
        let coordination = json!({ "last_committed_config": ["a"], "last_accepted_config": ["a"] });
        return json!({
            "cluster_uuid": "uuid", "version": 7 + reads.load(Ordering::SeqCst),
            "cluster_manager_node": "a", "nodes": { "a": node("a"), "b": node("b") },
            "metadata": { "cluster_coordination": coordination },
        });
    }
    if target.starts_with("/_cluster/settings") {
        let marker = json!({ "cluster": "search/logs", "restart": "r1", "before": {} }).to_string();
        return json!({ "persistent": { "cluster.metadata.stayput": marker }, "transient": {} });
    }
    if target.starts_with("/_nodes/_local") {
        return json!({ "cluster_name": "logs", "nodes": { "a": { "name": "a", "version": "2.19.3" } } });
    }
    if target.starts_with("/_nodes") {
        let node = json!({
            "version": "2.19.3", "roles": ["data"], "jvm": { "start_time_in_millis": 1 },
        });
        return json!({ "nodes": { "a": node, "b": node } });
    }
    json!({
        "name": "a", "cluster_name": "logs", "cluster_uuid": "uuid",
        "version": { "distribution": "opensearch", "number": "2.19.3" },
    })
}

/// Reads such an engine; returns the states of the copies, and how often they were read.
async fn read_from(color: &'static str, starts: bool) -> (Vec<ShardState>, u64) {
    let (moment, reads) = moment_of(color, starts, None, false).await;
    moment.health.expect("it is waited for").expect("a health");
    let topology = moment.topology.expect("a topology");
    (topology.shards.iter().map(|shard| shard.state).collect(), reads)
}

/// Starts an engine whose replica has started at the second read of the copies, or never; the health has
/// the given color all the time. Counts how often its copies are read.
pub(crate) async fn engine(color: &'static str, starts: bool) -> (Endpoint, Arc<AtomicU64>) {
    let reads = Arc::new(AtomicU64::new(0));
    let shared = Arc::clone(&reads);
    let endpoint = served(move |target| {
        let slow = ["/_cluster/health", "/_cluster/state/routing_table", "/_nodes/_all"];
        let slow = match color {
            NEVER => &slow[..],
            UNTOLD => &slow[..1],
            SILENT => &slow[2..],
            _ => &[],
        };
        let is_slow = slow.iter().any(|one| target.starts_with(one));
        (!is_slow).then(|| answer(target, color, starts, &shared))
    })
    .await;
    (endpoint, reads)
}

/// Reads such an engine, and how often the copies were read.
async fn moment_of(
    color: &'static str,
    starts: bool,
    told: Option<Health>,
    is_enough: bool,
) -> (Moment, u64) {
    let (endpoint, reads) = engine(color, starts).await;
    let timeout = if color == SILENT { Duration::from_secs(1) } else { Duration::from_secs(10) };
    let client = EngineClient::new(&[endpoint], &Access::Plain, timeout);
    let client = client.expect("a client");
    let identity = client.identify().await.expect("an engine");
    let (tell, is_limited) = oneshot::channel();
    tell.send(true).expect("it listens");
    let health = async {
        match told {
            Some(told) => Ok(told),
            None => client.health().await,
        }
    };
    let nodes = Nodes { before: None, joined: None, have_joined: |_: &Topology| is_enough };
    let moment = read(&client, &identity, nodes, health, is_limited).await;
    (moment, reads.load(Ordering::SeqCst))
}

/// The new process may take long to report its details, and so may the health.
#[tokio::test] // proves RESTART-39
async fn where_allocation_is_restored_next_only_the_nodes_are_waited_for() {
    let (moment, reads) = moment_of(NEVER, true, None, true).await;
    assert!(moment.health.is_none());
    assert_eq!((moment.topology.expect("a topology").nodes.len(), reads), (2, 0));
}

/// Reads an engine after one of its nodes has told that `joined` are listed: the names of the nodes, and how
/// often the engine was asked for the list.
async fn read_after_a_join(joined: &Topology, limited: bool) -> (Vec<String>, u64) {
    let lists = Arc::new(AtomicU64::new(0));
    let (counted, reads) = (Arc::clone(&lists), AtomicU64::new(0));
    let endpoint = served(move |target| {
        let is_list = target.starts_with("/_cluster/state/version,");
        counted.fetch_add(u64::from(is_list), Ordering::SeqCst);
        Some(answer(target, "yellow", false, &reads))
    })
    .await;
    let client = EngineClient::new(&[endpoint], &Access::Plain, Duration::from_secs(10));
    let client = client.expect("a client");
    let identity = client.identify().await.expect("an engine");
    let (tell, is_limited) = oneshot::channel();
    tell.send(limited).expect("it listens");
    let nodes =
        Nodes { before: None, joined: Some(joined.clone()), have_joined: |_: &Topology| true };
    let moment = read(&client, &identity, nodes, client.health(), is_limited).await;
    let nodes = moment.topology.expect("a topology").nodes;
    (nodes.into_iter().map(|node| node.name).collect(), lists.load(Ordering::SeqCst))
}

#[tokio::test] // proves RESTART-41
async fn a_list_that_was_told_is_not_read_where_allocation_is_restored_next() {
    let (moment, _) = moment_of("yellow", false, None, false).await;
    let mut told = moment.topology.expect("a topology");
    told.nodes[0].name = "told".to_owned();
    let both = |first: &str| vec![first.to_owned(), "b".to_owned()];
    assert_eq!(read_after_a_join(&told, true).await, (both("told"), 0));
    // Shard copies and health are not of the moment that was told.
    assert_eq!(read_after_a_join(&told, false).await, (both("a"), 1));
}

/// Else the next look would wait as long as a node that boots.
#[tokio::test]
async fn how_long_a_node_takes_to_report_its_details_is_not_counted() {
    let began = Instant::now();
    let (moment, _) = moment_of(SILENT, true, Some(health_of("yellow")), false).await;
    assert_eq!(moment.topology.expect("a topology").nodes.len(), 2);
    assert!(moment.reading < began.elapsed() / 2, "{:?}", moment.reading);
}

/// The copies are compared with it as with one that was read.
#[tokio::test]
async fn a_health_that_was_told_is_not_asked_for() {
    let told = health_of("green");
    let (moment, reads) = moment_of(UNTOLD, true, Some(told.clone()), false).await;
    assert_eq!(moment.health.expect("it was told").expect("a health"), told);
    let states = moment.topology.expect("a topology").shards;
    assert!(states.iter().all(|shard| shard.state == ShardState::Started));
    assert_eq!(reads, 2);
}

#[tokio::test] // proves RULE-16
async fn copies_older_than_a_green_health_are_read_again() {
    let (states, reads) = read_from("green", true).await;
    assert_eq!((states, reads), (vec![ShardState::Started; 2], 2));
}

/// Once, whatever comes; and not at all while the health says the same as the copies.
#[tokio::test]
async fn they_are_read_again_once_and_only_if_the_health_is_green() {
    let not_started = vec![ShardState::Initializing, ShardState::Started];
    assert_eq!(read_from("green", false).await, (not_started.clone(), 2));
    assert_eq!(read_from("yellow", true).await, (not_started, 1));
}
