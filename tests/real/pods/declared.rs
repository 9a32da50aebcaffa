//! From an empty namespace to three real OpenSearch nodes, by one SearchCluster.

mod claims;
mod commands;
mod counts;
mod elasticsearch;
mod https;
mod never_started;
mod pinned;
mod renamed;
mod reverted;
mod spec;
mod writer;

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::time::Instant;

use serde_json::{Value, json};

use super::bare::keys;
use super::fixture::Fixture;
use super::nodes::{Node, attribute, is_ready, observe_all, until_formed};
use super::opensearch::Parts;
use super::stateful_set::volumes;
use crate::support::engine::Kind;
use crate::support::http::exchange;
use crate::support::wait::eventually;
use renamed::rename;
use reverted::set_back_while_a_node_starts;
use spec::{declared, image_files, with_claims};

const TEST: &str = "pods::declared::a_declared_cluster_is_made_changed_and_grown";
/// Where the init container has put the program.
const STAYPUT: &str = "/stayput/stayput";
/// Every node that there is at some time.
const ALL: [&str; 8] = [
    "logs-all-0",
    "logs-all-1",
    "logs-all-2",
    "logs-all-3",
    "logs-more-0",
    "logs-other-0",
    "logs-other-1",
    "logs-other-2",
];
const EXCLUDED: &str = "cluster.routing.allocation.exclude._name";

#[test] // proves DECLARE-1, UPDATE-24, DECLARE-3, DECLARE-7, DECLARE-30
fn a_declared_cluster_is_made_changed_and_grown() {
    let Some((parts, fixture)) = Parts::lay(TEST, Kind::OpenSearch, "privileged") else { return };
    keys(&fixture);
    image_files(&fixture, &parts);
    let _storage = volumes(&fixture, &ALL);
    install(&fixture);

    let began = Instant::now();
    fixture.admin().apply(&opensearch(&fixture, &parts, "all", 3, "first"));
    let before = three_nodes(&fixture);
    println!("three nodes of a declared cluster: {} ms", began.elapsed().as_millis());
    eventually("the names of the first masters are emptied", || {
        let names = fixture.read("configmaps/logs-bootstrap");
        (names["data"]["INITIAL_MASTER_NODES"] == "").then_some(())
    });
    fixture.until_idle();
    let ours = |kind: &str| {
        let list = fixture.read(&format!("{kind}?labelSelector=stayput.dev/cluster%3Dlogs"));
        list["items"].as_array().expect("a list").clone()
    };
    let set = fixture.read("statefulsets/logs-all");
    assert_eq!(set["metadata"]["generation"], 1, "it was made once, and not changed");
    assert_eq!(ours("secrets").len(), 1);

    // A changed setting: every node is restarted in its pod, by itself. A label restarts nothing.
    commands::paused_and_resumed(&fixture, || {
        fixture.admin().apply(&opensearch(&fixture, &parts, "all", 3, "second"));
    });
    let after = observe_all(&fixture, STAYPUT);
    same_pods_other_runs(&before, &after);
    assert_eq!(attribute(&after, "round"), vec![json!("second"); 3]);
    commands::stopped_and_started(&fixture);

    set_back_while_a_node_starts(&fixture, |round| {
        fixture.admin().apply(&opensearch(&fixture, &parts, "all", 3, round));
    });

    let documents = counts::five_and_three_again(&fixture, &parts);
    rename(&fixture, &parts, documents, counts::THEIRS);
}

fn put(node: &Node, target: &str, body: &Value) {
    let stream = TcpStream::connect((node.address.as_str(), 9200)).expect("a connection");
    let answer = exchange(stream, ("PUT", target), Some(body)).expect("an answer");
    assert!(answer.status < 300, "{target}: {} {}", answer.status, answer.body);
}

/// The reconciler, which may make pods.
fn install(fixture: &Fixture) {
    fixture.people.run(
        "kubectl apply -k deploy/
         kubectl apply -f deploy/declared.yaml
         for role in clusters:stayput-reconciler declared:stayput-reconciler-declared; do
           kubectl --namespace search create rolebinding stayput-${role%:*} \
             --clusterrole=${role#*:} --serviceaccount=stayput:stayput-reconciler
         done
         kubectl --namespace stayput rollout status deployment stayput-reconciler --timeout=2m",
    );
}

/// Waits until three declared nodes are one cluster.
fn three_nodes(fixture: &Fixture) -> BTreeMap<String, Node> {
    until_replicas(fixture, 3);
    eventually("three pods are ready", || {
        let pods = fixture.pods();
        (pods.len() == 3 && pods.iter().all(is_ready)).then_some(())
    });
    let nodes = observe_all(fixture, STAYPUT);
    until_formed(&nodes);
    nodes
}

/// Waits until the first restart is done.
fn until_restarted(fixture: &Fixture) {
    eventually("a restart begins", || {
        let logs = fixture.logs();
        logs["status"]["ledger"]["handled"].as_array().filter(|all| !all.is_empty()).map(drop)
    });
    let done = "--for=jsonpath={.status.history[0].outcome}=done";
    fixture.run(&["wait", "searchcluster", "logs", done, "--timeout=15m"]);
}

/// Pods have the label `team` except in the first round. The claim of a node that leaves goes with it.
fn opensearch(fixture: &Fixture, parts: &Parts, set: &str, count: u32, round: &str) -> Value {
    let settings = json!({ "node.attr.round": round });
    let mut cluster = with_claims(declared(fixture, parts, set, count, &settings));
    let policy = json!({ "whenScaled": "Delete" });
    cluster["spec"]["nodeSets"][0]["persistentVolumeClaimRetentionPolicy"] = policy;
    if round != "first" {
        cluster["spec"]["nodeSets"][0]["podTemplate"]["metadata"]["labels"]["team"] = json!("a");
    }
    cluster
}

fn until_replicas(fixture: &Fixture, count: u32) {
    eventually("as many pods as are declared", || has_replicas(fixture, count).then_some(()));
}

/// Whether all sets together are to have as many pods, and have them.
fn has_replicas(fixture: &Fixture, count: u32) -> bool {
    let sets = fixture.read("statefulsets?labelSelector=stayput.dev/cluster%3Dlogs");
    let sets = sets["items"].as_array().expect("a list");
    let sum =
        |part: &str| sets.iter().filter_map(|set| set[part]["replicas"].as_u64()).sum::<u64>();
    [sum("spec"), sum("status")] == [u64::from(count); 2]
}

#[track_caller]
fn same_pods_other_runs(before: &BTreeMap<String, Node>, after: &BTreeMap<String, Node>) {
    assert!(before.keys().eq(after.keys()), "{after:#?}");
    for (name, node) in after {
        assert_eq!(node.stays, before[name].stays, "{name} is another pod or container");
        assert_ne!(node.run(), before[name].run(), "{name} was not restarted");
    }
}
