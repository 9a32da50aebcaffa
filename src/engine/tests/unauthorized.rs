//! Nodes that do not accept the credentials.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use stayput_standin::harness::served::{served, served_as};

use crate::{Access, Endpoint, EngineClient, EngineError};

fn local(port: u16) -> Endpoint {
    Endpoint { host: "127.0.0.1".into(), port }
}

/// A node that says 401, and how often it was asked.
async fn refusing() -> (Endpoint, Arc<AtomicU32>) {
    let asked = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&asked);
    let endpoint = served_as("401 Unauthorized", move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Some(json!({ "error": "wrong password" }))
    });
    (local(endpoint.await), asked)
}

fn client(endpoints: &[Endpoint]) -> EngineClient {
    EngineClient::new(endpoints, &Access::Plain, Duration::from_secs(10)).expect("a client")
}

#[tokio::test] // proves RESTART-160
async fn a_wrong_password_is_tried_twice_in_a_call() {
    let (mut endpoints, mut counts) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let (endpoint, asked) = refusing().await;
        endpoints.push(endpoint);
        counts.push(asked);
    }
    let refused = client(&endpoints).health().await;
    assert!(matches!(refused, Err(EngineError::Unauthorized(_))), "{refused:?}");
    let asked: Vec<u32> = counts.iter().map(|asked| asked.load(Ordering::SeqCst)).collect();
    assert_eq!(asked, [1, 1, 0]);
}

#[tokio::test] // proves RESTART-160
async fn a_node_that_two_others_without_a_cluster_are_before_is_asked_in_the_next_call() {
    let member = served(|_| {
        Some(json!({
            "cluster_name": "logs", "status": "green", "timed_out": false,
            "number_of_nodes": 1, "number_of_data_nodes": 1, "initializing_shards": 0,
            "relocating_shards": 0, "unassigned_shards": 0, "delayed_unassigned_shards": 0,
            "number_of_pending_tasks": 0, "number_of_in_flight_fetch": 0,
        }))
    });
    let client = client(&[refusing().await.0, refusing().await.0, local(member.await)]);
    client.health().await.expect_err("two nodes know no user");
    client.health().await.expect("the third one does");
}
