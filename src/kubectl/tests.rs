//! The exact output for people and for programs.

mod forecast;
mod pages;
mod progress;
mod schema;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use serde_json::{Value, json};
use stayput_kube_access::apiserver::{Apiserver, Call};
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::Time;

use crate::view::ClusterView;

/// A call that kubectl makes.
pub(crate) fn watched_pods() -> Call {
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    let api = Apiserver::for_kubectl(Client::try_from(config).unwrap());
    api.objects::<Pod>("search").about("watch")
}

pub(crate) fn now() -> Time {
    Time::parse("2026-11-21T03:10:00Z").unwrap()
}

/// Three pods of `search/logs`, of which the second is in `start`.
pub(crate) fn pods() -> Vec<Value> {
    let last = json!({
        "id": "4f2a91c07b3e", "outcome": "done", "reason": "",
        "started": "2026-11-21T03:08:00.000Z", "seconds": 74,
    });
    let phase = "elasticsearch.k8s.elastic.co/restart-phase";
    vec![
        pod(0, json!({phase: "schedule-rolling"}), "True"),
        pod(1, json!({phase: "start"}), "False"),
        pod(2, json!({"stayput.dev/last-restart": last.to_string()}), "True"),
    ]
}

/// Pods that are ready, and are not restarted.
pub(crate) fn ready(count: usize) -> Vec<Value> {
    (0..count).map(|number| pod(number, json!({}), "True")).collect()
}

/// A rolling restart: logs-2 done, logs-1 under way, logs-0 to come.
pub(crate) fn rolling() -> Value {
    let member = |number: u32, step: &str| {
        json!({
            "podUid": format!("uid-{number}"), "pod": format!("logs-{number}"),
            "node": format!("logs-{number}"), "step": step, "since": "2026-11-21T03:09:20Z",
        })
    };
    json!({
        "observedGeneration": 1,
        "phase": "Restarting", "progress": "rolling 1/3",
        "message": "logs-1 was started and has not joined yet",
        "counts": {"pods": 3, "ready": 2, "restarting": 1, "scheduled": 1},
        "nodes": [
            {"name": "logs-1", "phase": "start", "state": "starting", "checksum": "0123456789ab",
             "message": "logs-1 was started and has not joined yet"},
            {"name": "logs-0", "phase": "schedule-rolling", "state": "running",
             "checksum": "ba9876543210", "message": "another node is under way"},
        ],
        "conditions": [{
            "type": "Available", "status": "True", "reason": "Yellow",
            "message": "every primary is there, a replica is not",
            "lastTransitionTime": "2026-11-21T03:08:00Z",
        }],
        "restart": {
            "request": {
                "id": "4f2a91c07b3e", "strategy": "rolling", "target": {}, "by": "alice",
            },
            "started": "2026-11-21T03:08:00Z",
            "members": [member(0, "scheduled"), member(1, "restarting"), member(2, "finished")],
        },
        "handled": ["4f2a91c07b3e"],
    })
}

/// Nothing under way; one restart is over.
pub(crate) fn idle() -> Value {
    json!({
        "observedGeneration": 1, "phase": "Idle", "counts": {"pods": 3, "ready": 3},
        "handled": ["4f2a91c07b3e"],
        "history": [{
            "id": "4f2a91c07b3e", "strategy": "rolling", "outcome": "done", "reason": "",
            "started": "2026-11-21T03:08:00Z", "seconds": 100, "nodes": 3,
        }],
    })
}

/// The status as it is stored: what only decisions read is in `ledger`.
pub(crate) fn stored(mut status: Value) -> Value {
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

pub(crate) fn cluster(status: &Value, annotations: &Value) -> SearchCluster {
    serde_json::from_value(json!({
        "apiVersion": "stayput.dev/v1alpha1", "kind": "SearchCluster",
        "metadata": {
            "name": "logs", "namespace": "search", "resourceVersion": "9",
            "annotations": annotations,
        },
        "spec": {
            "pods": {"selector": {"matchLabels": {"app": "logs"}}},
            "engine": {"scheme": "http"},
            "manager": {"caSecret": "ca", "auth": {"serviceAccountToken": {}}},
        },
        "status": stored(status.clone()),
    }))
    .unwrap()
}

fn view(status: &Value, annotations: &Value, pods: Vec<Value>) -> ClusterView {
    let pods: Vec<k8s_openapi::api::core::v1::Pod> =
        pods.into_iter().map(|pod| serde_json::from_value(pod).unwrap()).collect();
    ClusterView::from_objects(&cluster(status, annotations), &pods)
}

/// A pod with a container that names its config; `ready` is the status of that condition.
fn pod(number: usize, annotations: Value, ready: &str) -> Value {
    json!({
        "metadata": {
            "name": format!("logs-{number}"), "namespace": "search",
            "uid": format!("uid-{number}"), "resourceVersion": "7", "annotations": annotations,
        },
        "spec": {
            "containers": [{
                "name": "search",
                "args": ["run", "--config=/config", "--", "search"],
                "volumeMounts": [{"name": "config", "mountPath": "/config"}],
            }],
            "volumes": [{"name": "config", "secret": {"secretName": "logs-config"}}],
        },
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    })
}
