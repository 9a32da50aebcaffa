//! The pages, what changes on them, and how a cluster is followed.

mod changed;
mod followed;
mod hostile;
mod looks;
mod saved;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::tests::{cluster, now, rolling};
use crate::view::live::{PageModel, Zones};

fn model(status: &Value, pods: Vec<Value>) -> PageModel {
    let pods: Vec<Pod> = pods.into_iter().map(|pod| serde_json::from_value(pod).unwrap()).collect();
    PageModel::default().read(&cluster(status, &Value::Null), pods.iter(), &Zones::new(), now())
}

/// A restart that is blocked, a node that is down, a debt, a certificate that ends, and restarts
/// that ended in every way.
fn trouble() -> Value {
    let mut status = rolling();
    let merge = json!({
        "phase": "Blocked", "blocked": "quorum",
        "message": "without logs-0 no majority of the voters is left; look with `kubectl stayput why logs-0`",
        "estimate": "about 4 minutes left, estimated from 1 of 3 nodes",
        "debts": {"start": [{"podUid": "uid-2", "node": "logs-2", "sequence": 4, "config": "last_good"}]},
    });
    for (name, value) in merge.as_object().unwrap() {
        status[name] = value.clone();
    }
    status["nodes"] = json!([
        {"name": "logs-2", "down": "failed", "state": "failed", "message": "the engine ended with code 78"},
        {"name": "logs-1", "phase": "start", "state": "starting", "message": "it has not joined yet"},
        {"name": "logs-0", "phase": "schedule-rolling", "state": "running", "blockedBy": "quorum",
         "message": "no majority of the voters is left", "because": ["image: search:1 -> search:2"],
         "step": "container"},
        {"name": "logs-9", "down": "crash_looping", "message": "its container is crash-looping"},
    ]);
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-11-21T03:08:00Z"})
    };
    status["conditions"] = json!([
        condition("Ready", "False", "quorum", "no majority of the voters is left"),
        condition("Stalled", "True", "quorum", "no majority of the voters is left"),
        condition("Available", "Unknown", "NotRead", "the engine does not answer"),
        condition("CertificatesValid", "False", "ExpiresSoon", "until 2026-11-24T00:00:00Z"),
    ]);
    let ended = |id: &str, outcome: &str, day: u32, reason: &str| {
        json!({"id": id, "strategy": "rolling", "outcome": outcome, "reason": reason, "nodes": 3,
            "started": format!("2026-11-{day:02}T03:00:00Z"), "seconds": 4000})
    };
    status["history"] = json!([
        ended("a", "done", 10, ""),
        ended("b", "aborted", 12, "cancelled by alice"),
        ended("c", "rolledBack", 13, "the engine ended with code 78"),
        ended("d", "interfered", 17, "somebody started logs-0"),
        ended("e", "superseded", 18, "by restart f"),
        ended("f", "done", 20, ""),
    ]);
    status
}
