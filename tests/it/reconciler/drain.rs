//! With `drain: auto` the drain of a node is ended as soon as no EndpointSlice sends it requests, and not before.

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use stayput_api::State;
use stayput_restart::Outcome;

use super::fixture::{Fixture, NODES, Reconciler};
use super::objects::{NAMESPACE, eventually};

/// The slice of a Service that has all pods; this one is not ready.
async fn slice(fixture: &Fixture, not_ready: Option<&str>) -> Value {
    let mut endpoints = Vec::new();
    for name in NODES {
        let uid = fixture.pod(name).await.metadata.uid.expect("a uid");
        let ready = not_ready != Some(name);
        endpoints.push(json!({
            "addresses": [fixture.with(name, |manager| manager.address.clone())],
            "conditions": {"ready": ready, "serving": ready},
            "targetRef": {"kind": "Pod", "name": name, "namespace": NAMESPACE, "uid": uid},
        }));
    }
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "logs-abc", "labels": {"kubernetes.io/service-name": "logs"}},
        "addressType": "IPv4",
        "endpoints": endpoints,
    })
}

async fn patch(fixture: &Fixture, patch: Value) {
    let api = fixture.api::<EndpointSlice>();
    let params = PatchParams::default();
    api.patch("logs-abc", &params, &Patch::Merge(patch)).await.expect("it is taken");
}

/// Looks of the reconciler at EndpointSlices until now.
fn looks(fixture: &Fixture) -> u64 {
    fixture.server.counts().matching(|one| one.verb == "list" && one.resource == "endpointslices")
}

/// The stops that the manager of a node has accepted until now: a second one ends the drain of the first.
fn stops(fixture: &Fixture, name: &str) -> usize {
    fixture.with(name, |manager| manager.stops())
}

#[tokio::test] // proves STOP-19
async fn it_is_ended_once_no_endpoint_slice_sends_requests_and_not_before() {
    let fixture = Fixture::new("").await;
    fixture.respec(json!({"restart": {"drain": "auto"}})).await;
    fixture.create::<EndpointSlice>(slice(&fixture, None).await).await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    let node = fixture.until_stopping().await;

    for change in ["one", "two"] {
        let before = looks(&fixture);
        patch(&fixture, json!({"metadata": {"annotations": {"change": change}}})).await;
        eventually("another look", async || (looks(&fixture) > before).then_some(())).await;
    }
    // The second look came after what the first one has led to.
    assert_eq!(stops(&fixture, node), 1, "a Service still sends it requests");
    let status = fixture.status(node).await;
    let reason = status.reason.as_ref().map(|reason| reason.code.as_str());
    assert_eq!((status.state, reason), (State::Stopping, Some("draining")));

    patch(&fixture, json!({"endpoints": slice(&fixture, Some(node)).await["endpoints"]})).await;
    eventually("its drain is ended", async || (stops(&fixture, node) > 1).then_some(())).await;

    // Pods that no Service has do not drain.
    let api = fixture.api::<EndpointSlice>();
    api.delete("logs-abc", &DeleteParams::default()).await.expect("it is taken");
    assert_eq!(fixture.until_over("r1").await.outcome, Outcome::Done);
    for name in NODES {
        assert!(stops(&fixture, name) > 1, "the drain of {name} was not ended");
    }
    reconciler.end().await;
}
