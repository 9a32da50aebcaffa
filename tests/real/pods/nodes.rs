//! The pods, and the processes in them.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::fixture::Fixture;
use crate::support::http::exchange;
use crate::support::wait::eventually;

pub(super) const NODES: [&str; 3] = ["logs-0", "logs-1", "logs-2"];

/// One pod at one time.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) uid: String,
    pub(super) address: String,
    /// What a restart in place must not change: the pod's uid, its containers' ids, how often they
    /// were restarted.
    pub(super) stays: Value,
    /// How often a container of it was made anew.
    pub(super) restarts: u64,
    /// The manager's status.
    pub(super) status: Value,
}

impl Node {
    pub(super) fn run(&self) -> &str {
        self.status["run"]["id"].as_str().expect("a run")
    }

    pub(super) fn checksum(&self) -> &str {
        self.status["run"]["checksum"].as_str().expect("a checksum")
    }

    /// Sends `GET target` to the engine.
    pub(super) fn ask(&self, target: &str) -> Option<Value> {
        ask(&self.address, target)
    }
}

/// Sends `GET target` to the engine at this address.
pub(super) fn ask(address: &str, target: &str) -> Option<Value> {
    let stream = TcpStream::connect((address, 9200)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(40))).ok()?;
    let answer = exchange(stream, ("GET", target), None).ok()?;
    (answer.status == 200).then_some(answer.body)
}

/// All pods, as the apiserver and their managers see them; `stayput` is the path of the program
/// there.
pub(super) fn observe(fixture: &Fixture, stayput: &str) -> BTreeMap<String, Node> {
    let nodes = observe_all(fixture, stayput);
    assert!(nodes.keys().eq(NODES), "{nodes:#?}");
    nodes
}

/// The same, whatever their names are.
pub(super) fn observe_all(fixture: &Fixture, stayput: &str) -> BTreeMap<String, Node> {
    let nodes = observe_killed(fixture, stayput);
    assert!(nodes.values().all(|node| node.restarts == 0), "{nodes:#?}");
    nodes
}

/// The same, of pods whose containers may have been made anew because a program in them was killed.
pub(super) fn observe_killed(fixture: &Fixture, stayput: &str) -> BTreeMap<String, Node> {
    let pods = fixture.pods();
    let pods = pods.iter().map(|pod| {
        let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
        let printed = fixture.run(&["exec", &name, "--", stayput, "status", "--json"]);
        let status: Value = serde_json::from_str(&printed).expect("JSON");
        assert_eq!(status["manager"]["pid"], 1, "{status:#}");
        let containers = pod["status"]["containerStatuses"].as_array().expect("containers");
        let mut stays = vec![pod["metadata"]["uid"].clone()];
        for container in containers {
            stays.extend([container["containerID"].clone(), container["restartCount"].clone()]);
        }
        let restarts = containers.iter().filter_map(|one| one["restartCount"].as_u64()).sum();
        let address = pod["status"]["podIP"].as_str().expect("an address").to_owned();
        let uid = pod["metadata"]["uid"].as_str().expect("a uid").to_owned();
        (name, Node { uid, address, stays: stays.into(), restarts, status })
    });
    pods.collect()
}

/// True if the kubelet says that the pod is ready.
pub(super) fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// Waits until these pods are there and ready.
pub(super) fn until_ready(fixture: &Fixture, names: &[&str]) {
    for name in names {
        let pod = format!("pod/{name}");
        fixture.run(&["wait", "--for=create", "--timeout=15m", &pod]);
        fixture.run(&["wait", "--for=condition=Ready", "--timeout=15m", &pod]);
    }
}

/// Waits until the engines are one cluster, with every shard copy in its place.
pub(super) fn until_formed(nodes: &BTreeMap<String, Node>) {
    let target = "/_cluster/health?wait_for_nodes=3&wait_for_status=green&timeout=5s";
    eventually("three nodes, green", || {
        let health = nodes.values().find_map(|node| node.ask(target))?;
        (health["timed_out"] == false).then_some(())
    });
}

/// Checks that these are the same pods with the same containers, never restarted, and that other
/// processes run with the config of this checksum.
#[track_caller]
pub(super) fn assert_restarted_in_place(
    before: &BTreeMap<String, Node>,
    after: &BTreeMap<String, Node>,
    expected: impl Fn(&str) -> String,
) {
    for (name, node) in after {
        let was = &before[name];
        assert_eq!(node.stays, was.stays, "{name} is another pod or container");
        assert_ne!(node.run(), was.run(), "{name} was not restarted: {:#}", node.status);
        assert_eq!(node.checksum(), expected(name), "{name}: {:#}", node.status);
        assert_ne!(node.checksum(), was.checksum(), "{name}");
        assert_eq!(node.status["state"], "running", "{name}: {:#}", node.status);
    }
}

/// The value of a node attribute on every node, from the cluster state.
pub(super) fn attribute(nodes: &BTreeMap<String, Node>, name: &str) -> Vec<Value> {
    let first = nodes.values().next().expect("a node");
    let all = first.ask("/_nodes").expect("the engine answers");
    let all = all["nodes"].as_object().expect("nodes").values();
    all.map(|node| node["attributes"][name].clone()).collect()
}
