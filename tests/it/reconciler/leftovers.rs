//! What a late request of ours has left on the engine is undone, and nothing that others have set.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use stayput_kube_access::cluster::SearchCluster;

use super::fixture::{Fixture, NODES, Reconciler};
use super::objects::eventually;
use crate::support::standin_cluster::ask_at;

const SETTINGS: &str = "/_cluster/settings?flat_settings=true";
const ALLOCATION: &str = "cluster.routing.allocation.enable";

#[tokio::test] // proves RESTART-118
async fn what_a_late_request_has_left_is_undone_by_a_reconciler_that_begins() {
    let fixture = Fixture::new("standin.distribution: elasticsearch").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    reconciler.end().await;
    // A restart of long ago, of which only the id is left.
    let handled = Patch::Merge(json!({ "status": { "ledger": { "handled": ["r1"] } } }));
    let api = fixture.api::<SearchCluster>();
    api.patch_status("logs", &PatchParams::default(), &handled).await.expect("it is taken");
    let marker = json!({ "cluster": "default/logs", "restart": "r1", "before": {} }).to_string();
    let ours = json!({ ALLOCATION: "primaries", "cluster.metadata.stayput": marker });
    put(&fixture, "/_cluster/settings", json!({ "persistent": ours })).await;
    record(&fixture, NODES[0], "default/logs r1").await;
    record(&fixture, NODES[1], "a person replaces its disk").await;

    let reconciler = Reconciler::start(fixture.client.clone());
    until_left(&fixture, &json!({}), &[NODES[1]]).await;
    reconciler.end().await;

    // The same value without our mark is somebody else's.
    let theirs = json!({ ALLOCATION: "primaries" });
    put(&fixture, "/_cluster/settings", json!({ "persistent": theirs })).await;
    record(&fixture, NODES[0], "r1").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    until_left(&fixture, &theirs, &[NODES[1]]).await;
    reconciler.end().await;
}

/// Waits until these nodes have records, and no other; the settings are these by then.
async fn until_left(fixture: &Fixture, settings: &Value, nodes: &[&str]) {
    let listed = fixture.engine_until("/_cluster/state/nodes").await;
    let mut wanted: Vec<String> = nodes.iter().map(|node| id_of(&listed, node)).collect();
    wanted.sort();
    eventually("only what others have made is left", async || {
        let records = fixture.engine_until("/_nodes/shutdown").await;
        let mut left: Vec<String> = records["nodes"]
            .as_array()?
            .iter()
            .map(|record| record["node_id"].as_str().unwrap_or_default().to_owned())
            .collect();
        left.sort();
        let is_set = &fixture.engine_until(SETTINGS).await["persistent"] == settings;
        (left == wanted && is_set).then_some(())
    })
    .await;
}

fn id_of(listed: &Value, name: &str) -> String {
    let nodes = listed["nodes"].as_object().expect("nodes");
    let (id, _) = nodes.iter().find(|(_, node)| node["name"] == name).expect("it is listed");
    id.clone()
}

async fn record(fixture: &Fixture, node: &str, reason: &str) {
    let listed = fixture.engine_until("/_cluster/state/nodes").await;
    let path = format!("/_nodes/{}/shutdown", id_of(&listed, node));
    put(fixture, &path, json!({ "type": "restart", "reason": reason })).await;
}

pub(super) async fn put(fixture: &Fixture, path: &str, body: Value) {
    let host = fixture.with(NODES[0], |manager| manager.address.clone());
    let path = path.to_owned();
    let ask = tokio::task::spawn_blocking(move || ask_at(&host, "PUT", &path, Some(&body)));
    let (status, answer) = ask.await.expect("no panic").expect("an answer");
    assert_eq!(status, 200, "{answer}");
}
