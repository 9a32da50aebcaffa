//! Addresses, objects, and waiting.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
pub(super) use stayput_standin::harness::objects::{pod, pod_status, secret};

/// Much longer than any step takes on a busy machine: if a test reaches it, there is a bug.
pub(super) const DEADLINE: Duration = Duration::from_secs(90);
/// The namespace of everything.
pub(super) const NAMESPACE: &str = "default";
/// The shared key of managers and reconciler.
pub(super) const KEY: &str = "0123456789abcdef0123456789abcdef";

/// Addresses that no other process, and no other test of this one, uses: all of 127.0.0.0/8 is
/// loopback.
pub(super) fn addresses() -> impl Iterator<Item = String> {
    static FIXTURES: AtomicU32 = AtomicU32::new(0);
    let (process, fixture) = (std::process::id(), FIXTURES.fetch_add(1, Ordering::Relaxed));
    // The engines' own tests use the lower half of a network. When 31 fixtures have used the upper
    // half, the next network is far from those of processes that were started at the same time.
    let (a, b) = (1 + (process / 250 + 83 * (fixture / 31)) % 250, 1 + process % 250);
    (0..).map(move |node| format!("127.{a}.{b}.{}", 128 + fixture % 31 * 4 + node))
}

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
