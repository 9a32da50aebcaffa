//! An apiserver with a cluster whose status the test writes, and `kubectl stayput ui` beside it.

#![allow(clippy::disallowed_types, reason = "nothing else waits for children in a test")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use stayput_kube_access::cluster::{SearchCluster, crd};
use stayput_standin::apiserver::ApiServer;
use tempfile::TempDir;
use tokio::runtime::{Builder, Handle};

const PHASE: &str = "elasticsearch.k8s.elastic.co/restart-phase";

pub(super) struct Stage {
    /// What the program has printed.
    pub(super) address: String,
    program: Child,
    client: Client,
    runtime: Handle,
    _directory: TempDir,
}

impl Stage {
    /// Sets of nodes with one role and this many nodes, in three zones.
    pub(super) fn start(sets: &[(&str, u32)]) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let handle = runtime.handle().clone();
        let server = runtime.block_on(ApiServer::start()).expect("a port");
        let (client, kubeconfig) = {
            let _entered = handle.enter();
            (server.client(), server.kubeconfig())
        };
        runtime.block_on(make(&client, sets));
        // It ends with the process: a test has nothing to wait for there.
        thread::spawn(move || {
            runtime.block_on(async move {
                let _server = server;
                std::future::pending::<()>().await;
            })
        });
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("kubeconfig");
        std::fs::write(&file, kubeconfig).expect("a file");
        let mut program = Command::new(env!("CARGO_BIN_EXE_kubectl-stayput"))
            .args(["ui", "logs"])
            .env("KUBECONFIG", file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it can be executed");
        let mut address = String::new();
        let stdout = program.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut address).expect("a line");
        let address = address.trim().to_owned();
        assert!(address.starts_with("http://127.0.0.1:"), "{address}");
        Self { address, program, client, runtime: handle, _directory: directory }
    }

    pub(super) fn origin(&self) -> &str {
        self.address.split_once("/?").expect("a token").0
    }

    pub(super) fn status(&self, status: &Value) {
        let clusters: Api<SearchCluster> = Api::namespaced(self.client.clone(), "default");
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        self.runtime.block_on(async {
            for node in status["nodes"].as_array().into_iter().flatten() {
                let Some(name) = node["name"].as_str() else { continue };
                let annotations = json!({"metadata": {"annotations": {PHASE: node["phase"]}}});
                let patch = Patch::Merge(annotations);
                pods.patch(name, &PatchParams::default(), &patch).await.expect("a pod");
            }
            // The whole status, as the reconciler writes it.
            let mut status = status.clone();
            let all = pods.list(&ListParams::default()).await.expect("pods").items;
            let uid = |pod: Pod| Some((pod.metadata.name?, pod.metadata.uid?));
            let uids: BTreeMap<String, String> = all.into_iter().filter_map(uid).collect();
            for member in status["restart"]["members"].as_array_mut().into_iter().flatten() {
                member["podUid"] = uids[member["pod"].as_str().expect("a name")].clone().into();
            }
            let mut cluster = clusters.get("logs").await.expect("it is there");
            cluster.status = Some(serde_json::from_value(stored(status)).expect("a status"));
            let parameters = PostParams::default();
            clusters.replace_status("logs", &parameters, &cluster).await.expect("it is written");
        });
    }

    pub(super) fn end_program(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.end_program();
    }
}

async fn make(client: &Client, sets: &[(&str, u32)]) {
    let parameters = PostParams::default();
    let crds = Api::all(client.clone());
    crds.create(&parameters, &crd()).await.expect("a definition");
    let clusters: Api<SearchCluster> = Api::namespaced(client.clone(), "default");
    let cluster = json!({
        "apiVersion": "stayput.dev/v1alpha1", "kind": "SearchCluster",
        "metadata": {"name": "logs", "namespace": "default"},
        "spec": {
            "pods": {"selector": {"matchLabels": {"app": "logs"}}}, "engine": {"scheme": "http"},
            "manager": {"caSecret": "ca", "auth": {"serviceAccountToken": {}}},
        },
    });
    let cluster = serde_json::from_value(cluster).expect("a SearchCluster");
    clusters.create(&parameters, &cluster).await.expect("it is made");
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    for (set, count) in sets {
        let role = if *set == "master" { "master".to_owned() } else { format!("data_{set}") };
        for number in 0..*count {
            let zone = ["eu-west-1a", "eu-west-1b", "eu-west-1c"][number as usize % 3];
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "name": format!("logs-{set}-{number}"),
                    "labels": {
                        "app": "logs", "topology.kubernetes.io/zone": zone,
                        format!("elasticsearch.k8s.elastic.co/node-{role}"): "true",
                    },
                    "ownerReferences": [{
                        "apiVersion": "apps/v1", "kind": "StatefulSet", "controller": true,
                        "uid": "u", "name": format!("logs-{set}"),
                    }],
                },
                "spec": {"containers": [{"name": "search", "image": "search"}]},
            });
            let pod = serde_json::from_value(pod).expect("a Pod");
            let made = pods.create(&parameters, &pod).await.expect("it is made");
            let ready = Patch::Merge(json!({"status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": null},
            ]}}));
            let name = made.metadata.name.expect("a name");
            pods.patch_status(&name, &PatchParams::default(), &ready).await.expect("it is ready");
        }
    }
}

fn ago(minutes: u64) -> String {
    let time = SystemTime::now() - Duration::from_secs(minutes * 60);
    humantime::format_rfc3339_seconds(time).to_string()
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": ago(25)})
}

fn history() -> Value {
    let ended = |id: &str, outcome: &str, days: u64, seconds: u64, reason: &str| {
        json!({"id": id, "strategy": "rolling", "outcome": outcome, "reason": reason, "nodes": 12,
            "started": ago(days * 24 * 60), "seconds": seconds})
    };
    json!([
        ended("81c07b3e4f2a", "done", 40, 3100, ""),
        ended("b3e4f2a91c07", "done", 31, 2900, ""),
        ended(
            "c07b3e4f2a91",
            "rolledBack",
            22,
            700,
            "logs-hot-2: the engine ended with code 78 before it was ready; it runs on the last good config"
        ),
        ended("e4f2a91c07b3", "done", 21, 3000, ""),
        ended("f2a91c07b3e4", "aborted", 9, 1200, "cancelled by bob"),
        ended("07b3e4f2a91c", "done", 2, 2950, ""),
    ])
}

/// The status as it is stored: what only decisions read is in `ledger`.
fn stored(mut status: Value) -> Value {
    let mut ledger = json!({});
    for field in ["restart", "queued", "debts", "handled", "keptStopped", "ignoredChanges"] {
        if let Some(value) = status.as_object_mut().and_then(|all| all.remove(field)) {
            ledger[field] = value;
        }
    }
    if let Some(fields) = status.as_object_mut() {
        fields.insert("ledger".into(), ledger);
    }
    status
}

/// A restart of 12 nodes whose next one may not be stopped.
pub(super) fn blocked() -> Value {
    let rule = "logs-master-2 was not restarted: without it no majority of the voting configuration is left, \
                because logs-master-0 is down; see `kubectl stayput why logs-master-0`";
    json!({
        "phase": "Blocked", "progress": "rolling 4/12", "blocked": "quorum", "message": rule,
        "counts": {"pods": 12, "ready": 11, "scheduled": 8, "down": 1},
        "nodes": [
            {"name": "logs-master-0", "down": "failed", "state": "failed", "checksum": "0123456789ab",
             "message": "the engine ended with code 78 after 3s before it was ready; its log: \
                         `kubectl logs logs-master-0 -c search`"},
            {"name": "logs-hot-5", "phase": "schedule-rolling", "state": "running",
             "message": "another node is under way"},
            {"name": "logs-master-2", "phase": "schedule-rolling", "state": "running",
             "blockedBy": "quorum", "message": rule},
        ],
        "conditions": [
            condition("Ready", "False", "quorum", "a majority of the voting configuration would be lost"),
            condition("Stalled", "True", "quorum", "a majority of the voting configuration would be lost"),
            condition("Available", "True", "Yellow", "every primary is there, a replica is not"),
            condition("CertificatesValid", "True", "Valid", "until 2027-01-01T00:00:00Z"),
        ],
        "debts": {"allocation": {"restart": "4f2a91c07b3e", "before": {}, "holders": []}},
        "restart": restart(&["logs-warm-0", "logs-warm-1", "logs-warm-2", "logs-hot-0"], &[]),
        "handled": ["4f2a91c07b3e"], "history": history(),
    })
}

/// The same restart, going on.
pub(super) fn under_way() -> Value {
    let mut status = blocked();
    status["phase"] = "Restarting".into();
    status["blocked"] = Value::Null;
    status["message"] = "logs-hot-5 is being stopped".into();
    status["estimate"] = "about 20 minutes left, estimated from 4 of 12 nodes".into();
    status["debts"] = json!({});
    status["nodes"] = json!([
        {"name": "logs-hot-5", "phase": "stop", "state": "stopping", "message": "its engine is being stopped"},
        {"name": "logs-hot-4", "phase": "schedule-rolling", "state": "running",
         "message": "logs-hot-5 is under way; one node at a time"},
    ]);
    status["conditions"] = json!([
        condition("Ready", "False", "RestartInProgress", "4 of 12 nodes are done"),
        condition("Reconciling", "True", "RestartInProgress", ""),
        condition("Available", "True", "Green", "every shard is there"),
        condition("CertificatesValid", "True", "Valid", "until 2027-01-01T00:00:00Z"),
    ]);
    let done = ["logs-warm-0", "logs-warm-1", "logs-warm-2", "logs-hot-0"];
    status["restart"] = restart(&done, &["logs-hot-5"]);
    status
}

/// A restart of a thousand nodes.
pub(super) fn thousand() -> Value {
    let mut status = under_way();
    let done: Vec<String> = (0..400).map(|number| format!("logs-warm-{number}")).collect();
    let done: Vec<&str> = done.iter().map(String::as_str).collect();
    let others = (0..597).map(|number| format!("logs-hot-{number}"));
    let others: Vec<String> =
        others.chain((0..3).map(|number| format!("logs-master-{number}"))).collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    status["restart"] = members(&done, &["logs-hot-5"], &others);
    status["progress"] = "rolling 400/1000".into();
    status
}

fn restart(done: &[&str], under_way: &[&str]) -> Value {
    let sets = [("master", 3), ("hot", 6), ("warm", 3)];
    let all: Vec<String> = sets
        .iter()
        .flat_map(|(set, count)| (0..*count).map(move |number| format!("logs-{set}-{number}")))
        .collect();
    members(done, under_way, &all.iter().map(String::as_str).collect::<Vec<_>>())
}

fn members(done: &[&str], under_way: &[&str], all: &[&str]) -> Value {
    let member = |node: &str, step: &str| {
        json!({
            "podUid": "", "pod": node, "node": node, "step": step, "since": ago(3),
        })
    };
    let rest = all.iter().filter(|node| !done.contains(node) && !under_way.contains(node));
    let members: Vec<Value> = done
        .iter()
        .map(|node| member(node, "finished"))
        .chain(under_way.iter().map(|node| member(node, "restarting")))
        .chain(rest.map(|node| member(node, "scheduled")))
        .collect();
    json!({
        "request": {"id": "4f2a91c07b3e", "strategy": "rolling", "target": {}, "by": "alice"},
        "started": ago(25), "members": members,
    })
}
