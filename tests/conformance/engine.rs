//! How a cluster of three engines answers while its nodes stop and start: one suite for the real
//! engines and for the stand-in, so that the stand-in behaves like them.
//!
//! A case begins with three nodes and no index, and ends in this state, so that cases can follow
//! each other on one cluster.
#![allow(clippy::unwrap_used, reason = "a test ends with a panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

mod documents;
mod leaving;
mod restarts;
mod routes;
mod stops;

/// A real engine on busy cores takes half a minute to be back.
const NODE_RETURN_TIMEOUT: Duration = Duration::from_secs(120);
/// The setting for which copies may be allocated.
const ALLOCATION: &str = "cluster.routing.allocation.enable";

/// Three nodes of one cluster, all of them data nodes and master-eligible.
pub trait Cluster {
    /// Whether it is Elasticsearch, with node-shutdown routes.
    fn is_elasticsearch(&self) -> bool;
    /// `node.name` of the node.
    fn name(&self, node: usize) -> String;
    /// Sends a request to that node: status and body, null if the body is no JSON. `None`: no
    /// answer.
    fn ask(
        &self,
        node: usize,
        method: &str,
        target: &str,
        body: Option<&Value>,
    ) -> Option<(u16, Value)>;
    /// Stops the node, and returns when its process is gone.
    fn stop(&mut self, node: usize);
    /// Starts the node's process again.
    fn start(&mut self, node: usize);
}

/// A case, by name.
pub type Story = (&'static str, fn(&mut dyn Cluster));

/// All of them.
pub const STORIES: &[Story] = &[
    ("routes::it_says_who_it_is", routes::it_says_who_it_is),
    ("routes::health_waits_and_says_so", routes::health_waits_and_says_so),
    ("routes::settings_come_and_go", routes::settings_come_and_go),
    ("routes::shutdown_records_are_kept", routes::shutdown_records_are_kept),
    ("documents::what_is_acknowledged_is_found", documents::what_is_acknowledged_is_found),
    ("documents::a_write_waits_for_its_primary", documents::a_write_waits_for_its_primary),
    ("leaving::an_excluded_node_is_emptied", leaving::an_excluded_node_is_emptied),
    ("leaving::a_copy_that_cannot_move_says_why", leaving::a_copy_that_cannot_move_says_why),
    ("leaving::a_vote_is_excluded_and_comes_back", leaving::a_vote_is_excluded_and_comes_back),
    ("restarts::a_node_is_restarted", restarts::a_node_is_restarted),
    ("restarts::the_master_is_restarted", restarts::the_master_is_restarted),
    ("restarts::the_whole_cluster_is_restarted", restarts::the_whole_cluster_is_restarted),
    ("stops::an_only_copy_makes_the_cluster_red", stops::an_only_copy_makes_the_cluster_red),
    ("stops::without_a_majority_there_is_no_master", stops::without_a_majority_there_is_no_master),
    ("stops::a_late_node_is_not_waited_for", stops::a_late_node_is_not_waited_for),
];

/// Runs one case, and checks that the cluster is complete and empty before and after.
pub fn run_story(cluster: &mut dyn Cluster, (name, story): Story) {
    println!("-- {name}");
    await_health(cluster, 0, "wait_for_nodes=3&wait_for_status=green");
    // The first configuration has placeholders for nodes that started late.
    eventually("all three vote", || {
        let state = view(cluster, 0);
        (state.committed == state.ids() && state.accepted == state.ids()).then_some(())
    });
    story(cluster);
    let health = await_health(cluster, 0, "wait_for_nodes=3&wait_for_status=green");
    assert_eq!(health["active_shards"], 0, "{name} left an index behind");
    assert_eq!(settings(cluster, 0), json!({"persistent": {}, "transient": {}}), "{name}");
}

/// Sends a request until there is an answer, which must have this status.
#[track_caller]
fn ask(
    cluster: &dyn Cluster,
    node: usize,
    (method, target): (&str, &str),
    body: Option<&Value>,
    expected: u16,
) -> Value {
    let answer = eventually(target, || cluster.ask(node, method, target, body));
    assert_eq!(answer.0, expected, "{method} {target}: {:#}", answer.1);
    answer.1
}

#[track_caller]
fn get(cluster: &dyn Cluster, node: usize, target: &str) -> Value {
    ask(cluster, node, ("GET", target), None, 200)
}

#[track_caller]
fn put(cluster: &dyn Cluster, node: usize, target: &str, body: &Value) -> Value {
    ask(cluster, node, ("PUT", target), Some(body), 200)
}

/// Creates an index, and returns when all of its copies are started.
#[track_caller]
fn create_index(cluster: &dyn Cluster, name: &str, shards: usize, replicas: usize) {
    let settings = json!({"number_of_shards": shards, "number_of_replicas": replicas});
    let made = put(cluster, 0, &format!("/{name}"), &json!({"settings": settings}));
    let expected = json!({"acknowledged": true, "shards_acknowledged": true, "index": name});
    assert_eq!(made, expected);
    await_health(cluster, 0, "wait_for_status=green");
}

#[track_caller]
fn delete_index(cluster: &dyn Cluster, name: &str) {
    let deleted = ask(cluster, 0, ("DELETE", &format!("/{name}")), None, 200);
    assert_eq!(deleted, json!({"acknowledged": true}));
}

/// The health when the conditions in `query` are met.
#[track_caller]
fn await_health(cluster: &dyn Cluster, node: usize, wanted: &str) -> Value {
    let target = format!("/_cluster/health?{wanted}&timeout=5s");
    eventually(&target, || {
        let (status, body) = cluster.ask(node, "GET", &target, None)?;
        (status == 200).then_some(body)
    })
}

/// The health now.
#[track_caller]
fn health(cluster: &dyn Cluster, node: usize) -> Value {
    get(cluster, node, "/_cluster/health?timeout=10s")
}

#[track_caller]
fn settings(cluster: &dyn Cluster, node: usize) -> Value {
    get(cluster, node, "/_cluster/settings?flat_settings=true")
}

/// What a node reports about the cluster.
#[derive(Debug, PartialEq)]
struct View {
    uuid: String,
    master: String,
    /// Name to id and ephemeral id.
    nodes: BTreeMap<String, (String, String)>,
    term: u64,
    committed: BTreeSet<String>,
    accepted: BTreeSet<String>,
}

#[track_caller]
fn view(cluster: &dyn Cluster, node: usize) -> View {
    let target = "/_cluster/state/version,master_node,nodes,metadata?filter_path=cluster_uuid,\
                  version,master_node,nodes.*.name,nodes.*.ephemeral_id,\
                  metadata.cluster_coordination";
    let state = get(cluster, node, target);
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    let ids = |value: &Value| value.as_array().expect("a list").iter().map(text).collect();
    let coordination = &state["metadata"]["cluster_coordination"];
    assert_eq!(coordination["voting_config_exclusions"], json!([]));
    assert!(state["version"].as_u64().is_some_and(|version| version > 0));
    let nodes = state["nodes"].as_object().expect("nodes").iter();
    let known = |(id, node): (&String, &Value)| {
        (text(&node["name"]), (id.clone(), text(&node["ephemeral_id"])))
    };
    View {
        uuid: text(&state["cluster_uuid"]),
        master: text(&state["master_node"]),
        nodes: nodes.map(known).collect(),
        term: coordination["term"].as_u64().expect("a term"),
        committed: ids(&coordination["last_committed_config"]),
        accepted: ids(&coordination["last_accepted_config"]),
    }
}

impl View {
    fn names(&self) -> Vec<&str> {
        self.nodes.keys().map(String::as_str).collect()
    }

    fn ids(&self) -> BTreeSet<String> {
        self.nodes.values().map(|(id, _)| id.clone()).collect()
    }

    fn id(&self, cluster: &dyn Cluster, node: usize) -> &str {
        &self.nodes[&cluster.name(node)].0
    }

    fn ephemeral_id(&self, cluster: &dyn Cluster, node: usize) -> &str {
        &self.nodes[&cluster.name(node)].1
    }

    /// The elected master's number.
    fn master(&self, cluster: &dyn Cluster) -> usize {
        (0..3).find(|node| self.id(cluster, *node) == self.master).expect("a node is the master")
    }
}

/// One row of `_cat/shards`: shard, `p` or `r`, state, node.
type Row = (String, String, String, Option<String>);

/// The copies of an index.
#[track_caller]
fn copies(cluster: &dyn Cluster, node: usize, index: &str) -> Vec<Row> {
    let target = format!("/_cat/shards/{index}?format=json&h=shard,prirep,state,node");
    let rows = get(cluster, node, &target);
    let mut rows: Vec<Row> = (rows.as_array().expect("rows").iter())
        .map(|row| {
            let text = |name: &str| row[name].as_str().map(str::to_owned);
            let always = |name: &str| text(name).expect("a string");
            (always("shard"), always("prirep"), always("state"), text("node"))
        })
        .collect();
    rows.sort();
    rows
}

/// The numbers of the nodes with the primary and the replica of a one-shard index.
#[track_caller]
fn primary_and_replica(cluster: &dyn Cluster, node: usize, index: &str) -> (usize, usize) {
    let rows = copies(cluster, node, index);
    let [(_, p, started, Some(primary)), (_, r, also, Some(replica))] = &rows[..] else {
        panic!("not two copies in use: {rows:?}")
    };
    assert_eq!((p.as_str(), started.as_str()), ("p", "STARTED"));
    assert_eq!((r.as_str(), also.as_str()), ("r", "STARTED"));
    let number = |name: &String| (0..3).find(|node| cluster.name(*node) == *name).expect("a node");
    (number(primary), number(replica))
}

/// Polls until there is a result.
#[track_caller]
fn eventually<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + NODE_RETURN_TIMEOUT;
    loop {
        if let Some(seen) = poll() {
            return seen;
        }
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
