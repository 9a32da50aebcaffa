//! Three real OpenSearch nodes of a StatefulSet, with storage that outlives their pods, brought to
//! a changed config in two ways: restarted in place by the reconciler, and by deleting one pod
//! after the other, both with all defaults and while a client writes through a Service.
//! `bench/rolling` runs this and compares the two.
//!
//! One line of JSON for each way and round.

mod clients;
mod ledgers;

use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bare::{install, keys, pod};
use super::fixture::{ACCOUNT, Fixture, MANAGER};
use super::nodes::{
    NODES, assert_restarted_in_place, attribute, observe, until_formed, until_ready,
};
use super::opensearch::Parts;
use super::stateful_set::{stateful_set, volumes, with_claims};
use crate::support::http::exchange;
use crate::support::skip::skip;
use crate::support::wait::eventually;
use clients::Clients;
pub(super) use clients::service;
use ledgers::Ledgers;

/// How many rounds, unless `STAYPUT_ROUNDS` is set. Each uses new addresses for pods, and the nodes
/// know only the first sixteen.
const ROUNDS: u32 = 2;
/// Longer than the engines take to become green on a busy machine.
const GREEN_TIMEOUT: Duration = Duration::from_secs(180);

#[test]
#[ignore = "a measurement: bench/rolling"]
fn in_place_and_by_deletion() {
    const TEST: &str = "pods::figures::in_place_and_by_deletion";
    let parts = match Parts::find() {
        Ok(parts) => parts,
        Err(why) => return skip(TEST, &why),
    };
    let fixture = match Fixture::lay("privileged") {
        Ok(fixture) => fixture,
        Err(why) => return skip(TEST, &why),
    };
    let rounds = std::env::var("STAYPUT_ROUNDS");
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"));
    let _storage = volumes(&fixture);
    let stage = Stage { seeds: fixture.seeds(), parts, fixture };
    stage.set_up();
    for round in 0..rounds {
        println!("{}", stage.in_place(&format!("in-place-{round}")));
        println!("{}", stage.by_deletion(&format!("deleted-{round}")));
    }
}

struct Stage {
    fixture: Fixture,
    parts: Parts,
    seeds: String,
}

impl Stage {
    fn set_up(&self) {
        keys(&self.fixture);
        self.configure("first");
        self.fixture.admin().apply(&service());
        self.fixture.admin().apply(&set(self.parts.real(pod(&self.fixture, "logs"))));
        until_ready(&self.fixture, &NODES);
        let nodes = observe(&self.fixture, MANAGER);
        until_formed(&nodes);
        // Data that has to be recovered.
        let settings = json!({ "settings": { "number_of_shards": 2, "number_of_replicas": 1 } });
        let put = |target: &str, body: &Value| {
            let stream = TcpStream::connect((nodes["logs-0"].address.as_str(), 9200));
            let answer = exchange(stream.expect("it listens"), ("PUT", target), Some(body));
            let answer = answer.expect("an answer");
            assert!(matches!(answer.status, 200 | 201), "{target}: {:#}", answer.body);
        };
        put("/load?wait_for_active_shards=all", &settings);
        for id in 0..300 {
            put(&format!("/load/_doc/{id}"), &json!({ "number": id }));
        }
        install(&self.fixture, "logs-config");
    }

    /// Writes the Secret; returns the checksum of its content.
    fn configure(&self, round: &str) -> String {
        let files = self.parts.files("${NODE_NAME}", &self.seeds, round);
        let files = files.each_ref().map(|(file, text)| (*file, text.as_str()));
        self.fixture.secret("logs-config", &files);
        self.fixture.checksum(&files)
    }

    /// Restarts in place, and counts the requests to the apiserver.
    fn in_place(&self, round: &str) -> Value {
        let fixture = &self.fixture;
        // The reconciler has also seen the pods that replaced the others.
        eventually("all are seen, and nothing goes on", || {
            let status = fixture.json(&["get", "searchcluster", "logs"])["status"].clone();
            (status["phase"] == "Idle" && status["counts"]["ready"] == 3).then_some(())
        });
        let before = observe(fixture, MANAGER);
        let expected = self.configure(round);
        let mark = fixture.cluster.audit.now();
        let ledgers = Ledgers::follow(fixture);
        let clients = Clients::start(fixture);
        let began = Instant::now();
        fixture.people.run("kubectl stayput -n search restart logs --watch");
        until_formed(&before);
        let took = began.elapsed();
        let requests = clients.end();
        let ledger_writes = ledgers.end(fixture);
        let after = observe(fixture, MANAGER);
        assert_restarted_in_place(&before, &after, |_| expected.clone());
        assert_eq!(attribute(&after, "round"), vec![json!(round); 3]);
        let events = fixture.cluster.audit.since(mark, ACCOUNT);
        let asked = |verb: &str, resource: &str, sub: &Value| {
            let is_one = |event: &&Value| {
                let of = &event["objectRef"];
                event["verb"] == verb && of["resource"] == resource && of["subresource"] == *sub
            };
            events.iter().filter(is_one).count()
        };
        let is_conflict = |event: &&Value| {
            matches!(event["responseStatus"]["code"].as_u64(), Some(409 | 422))
                && event["objectRef"]["resource"] != "leases"
        };
        for conflict in events.iter().filter(is_conflict) {
            println!("a conflict: {conflict}");
        }
        json!({
            "way": "in place",
            "ms": took.as_millis(),
            "requests": requests.sent,
            "refused": requests.refused,
            "failed": requests.failed,
            "pod_patches": asked("patch", "pods", &Value::Null),
            "status_writes": asked("update", "searchclusters", &json!("status")),
            "ledger_writes": ledger_writes,
            "conflicts": events.iter().filter(is_conflict).count(),
            "all": fixture.asked_since(mark).to_string(),
        })
    }

    /// As operators and users do it: the next pod when the last one is ready and the cluster is
    /// green.
    fn by_deletion(&self, round: &str) -> Value {
        let fixture = &self.fixture;
        let before = observe(fixture, MANAGER);
        self.configure(round);
        let clients = Clients::start(fixture);
        let began = Instant::now();
        for name in NODES.into_iter().rev() {
            fixture.run(&["delete", "pod", name]);
            fixture.run(&["wait", "--for=create", "--timeout=60s", &format!("pod/{name}")]);
            fixture.run(&[
                "wait",
                "--for=condition=Ready",
                "--timeout=180s",
                &format!("pod/{name}"),
            ]);
            self.until_green();
        }
        let took = began.elapsed();
        let requests = clients.end();
        let after = observe(fixture, MANAGER);
        assert!(NODES.iter().all(|name| before[*name].uid != after[*name].uid), "{after:#?}");
        assert_eq!(attribute(&after, "round"), vec![json!(round); 3]);
        json!({
            "way": "by deletion",
            "ms": took.as_millis(),
            "requests": requests.sent,
            "refused": requests.refused,
            "failed": requests.failed,
        })
    }

    /// The engine delays its answer until then.
    fn until_green(&self) {
        let path = "jsonpath={.items[*].status.podIP}";
        let addresses =
            self.fixture.run(&["get", "pods", "--selector", "app=logs", "--output", path]);
        let target = "/_cluster/health?wait_for_nodes=3&wait_for_status=green&timeout=30s";
        eventually("three nodes, green", || {
            addresses.split(' ').find_map(|address| {
                let stream = TcpStream::connect((address, 9200)).ok()?;
                stream.set_read_timeout(Some(GREEN_TIMEOUT)).ok()?;
                let health = exchange(stream, ("GET", target), None).ok()?;
                (health.status == 200 && health.body["timed_out"] == false).then_some(())
            })
        });
    }
}

/// The nodes, each with its own name.
fn set(pod: Value) -> Value {
    let mut spec = pod["spec"].clone();
    let name = json!({ "fieldRef": { "fieldPath": "metadata.name" } });
    let env = spec["containers"][0]["env"].as_array_mut().expect("a list");
    env.push(json!({ "name": "NODE_NAME", "valueFrom": name }));
    with_claims(stateful_set(&spec))
}
