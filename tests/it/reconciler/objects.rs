//! Objects, and waiting.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
pub(super) use stayput_standin::harness::objects::{pod, pod_status, secret};

/// Much longer than any step takes on a busy machine: if a test reaches it, there is a bug. Some steps wait for
/// an interval of the reconciler, which is a minute.
pub(super) const DEADLINE: Duration = Duration::from_secs(180);
/// The namespace of everything.
pub(super) const NAMESPACE: &str = "default";
/// The shared key of managers and reconciler.
pub(super) const KEY: &str = "0123456789abcdef0123456789abcdef";

/// A SearchCluster over the pods labelled `app=logs`.
pub(super) fn search_cluster(sources: bool) -> Value {
    let sources = if sources { json!([{"secret": "{pod}-config"}]) } else { json!([]) };
    json!({
        "apiVersion": "stayput.dev/v1alpha1",
        "kind": "SearchCluster",
        "metadata": {"name": "logs", "namespace": NAMESPACE},
        "spec": {
            "pods": {"selector": {"matchLabels": {"app": "logs"}}},
            "engine": {"scheme": "http", "port": 9200},
            "manager": {
                "port": 9199,
                "caSecret": "manager-ca",
                "auth": {"jwtKeySecret": "manager-key"},
            },
            "config": {"sources": sources},
            "restart": {"drain": "0s", "phaseTimeout": "60s"},
        },
    })
}

/// Calls `poll` until it returns something.
pub(super) async fn eventually<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let until = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = poll().await {
            return found;
        }
        assert!(Instant::now() < until, "{what}: not within {DEADLINE:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
