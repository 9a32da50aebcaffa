//! Three real OpenSearch nodes of a StatefulSet, with storage that outlives their pods.

use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::bare::{install, keys, pod};
use super::clients::service;
use super::fixture::{Fixture, MANAGER};
use super::nodes::{NODES, observe, until_formed, until_ready};
use super::opensearch::{Jvm, Parts};
use super::stateful_set::{stateful_set, volumes, with_claims};
use crate::support::engine::Kind;
use crate::support::http::exchange;
use crate::support::wait::eventually;

/// A heap that follows the container's memory, and a quick start.
const HEAP: &str = "-XX:InitialRAMPercentage=25 -XX:MaxRAMPercentage=25 -XX:TieredStopAtLevel=1";
/// Longer than the engines take to become green on a busy machine.
const GREEN_TIMEOUT: Duration = Duration::from_secs(180);

/// What is done about allocation while a pod is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allocation {
    Left,
    /// No replicas until the pod is ready again.
    Limited,
}

pub(super) struct OpenSearchSet {
    pub(super) fixture: Fixture,
    parts: Parts,
    seeds: String,
    /// A directory for each node; removed with it.
    _storage: TempDir,
    /// As the set has it, unless it was edited.
    pub(super) template: Value,
}

impl OpenSearchSet {
    /// Three nodes with documents, each with this much memory, and a reconciler; `add` adds to the
    /// pods' spec. None if something is missing here.
    pub(super) fn set_up(
        test: &str,
        memory: &str,
        add: impl FnOnce(&Fixture, &mut Value),
    ) -> Option<Self> {
        let (parts, fixture) = Parts::lay(test, Kind::OpenSearch, "privileged")?;
        keys(&fixture);
        let (_storage, seeds) = (volumes(&fixture, &NODES), fixture.seeds());
        let mut spec = parts.real(pod(&fixture, "logs"))["spec"].take();
        give(&mut spec, memory);
        add(&fixture, &mut spec);
        let set = with_claims(stateful_set(&spec));
        let template = set["spec"]["template"].clone();
        let made = Self { fixture, parts, seeds, template, _storage };
        made.configure("first", Jvm::Warm);
        made.fixture.admin().apply(&service());
        made.fixture.admin().apply(&set);
        until_ready(&made.fixture, &NODES);
        write(&made.fixture);
        install(&made.fixture, "logs-config");
        Some(made)
    }

    /// Whether edited templates are carried out: `inPlace` or `off`.
    pub(super) fn carry_templates_out(&self, mode: &str) {
        self.fixture.configure(&json!({ "update": { "mode": mode } }));
    }

    /// Writes the Secret; returns the checksum of its content.
    pub(super) fn configure(&self, round: &str, jvm: Jvm) -> String {
        let mut files = self.parts.files("${NODE_NAME}", &self.seeds, round, jvm);
        let is_no_heap = |line: &&str| !line.starts_with("-Xm");
        files[1].1 =
            files[1].1.lines().filter(is_no_heap).map(|line| format!("{line}\n")).collect();
        let files = files.each_ref().map(|(file, text)| (*file, text.as_str()));
        self.fixture.secret("logs-config", &files);
        self.fixture.checksum(&files)
    }

    /// As operators and users replace pods: the next one when the last one is ready and the cluster
    /// is green.
    pub(super) fn delete_pods(&self, allocation: Allocation) {
        for name in NODES.into_iter().rev() {
            self.allocate(allocation, &json!("primaries"));
            self.fixture.run(&["delete", "pod", name]);
            until_ready(&self.fixture, &[name]);
            self.allocate(allocation, &Value::Null);
            self.until_green();
        }
    }

    /// Sets what may be allocated, and flushes, as the engines' documents advise for a restart.
    fn allocate(&self, allocation: Allocation, enable: &Value) {
        if allocation == Allocation::Left {
            return;
        }
        let settings = json!({ "persistent": { "cluster.routing.allocation.enable": enable } });
        self.until_answered("the setting is taken", ("PUT", "/_cluster/settings"), &settings);
        if !enable.is_null() {
            self.until_answered("it is flushed", ("POST", "/_flush"), &Value::Null);
        }
    }

    /// The engine delays its answer until then.
    pub(super) fn until_green(&self) {
        let target = "/_cluster/health?wait_for_nodes=3&wait_for_status=green&timeout=30s";
        self.until_answered("three nodes, green", ("GET", target), &Value::Null);
    }

    /// Sends a request to the nodes in turn until one carries it out.
    fn until_answered(&self, what: &str, request: (&str, &str), body: &Value) {
        let path = "jsonpath={.items[*].status.podIP}";
        let addresses =
            self.fixture.run(&["get", "pods", "--selector", "app=logs", "--output", path]);
        eventually(what, || {
            addresses.split(' ').find_map(|address| {
                let stream = TcpStream::connect((address, 9200)).ok()?;
                stream.set_read_timeout(Some(GREEN_TIMEOUT)).ok()?;
                let body = Some(body).filter(|body| !body.is_null());
                let answer = exchange(stream, request, body).ok()?;
                (answer.status == 200 && answer.body["timed_out"] != true).then_some(())
            })
        });
    }
}

/// Makes an index with documents, which have to be recovered.
pub(super) fn write(fixture: &Fixture) {
    let nodes = observe(fixture, MANAGER);
    until_formed(&nodes);
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
}

/// Gives each node its own name, and this much memory.
pub(super) fn give(spec: &mut Value, memory: &str) {
    let name = json!({ "fieldRef": { "fieldPath": "metadata.name" } });
    let container = &mut spec["containers"][0];
    container["resources"] = json!({
        "requests": { "cpu": "100m", "memory": memory },
        "limits": { "memory": memory },
    });
    let env = container["env"].as_array_mut().expect("a list");
    env.push(json!({ "name": "NODE_NAME", "valueFrom": name }));
    for variable in env {
        if variable["name"] == "OPENSEARCH_JAVA_OPTS" {
            variable["value"] = json!(HEAP);
        }
    }
}
