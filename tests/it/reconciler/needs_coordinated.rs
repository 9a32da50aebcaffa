//! A config that needs all nodes at once.

use nix::sys::signal::Signal;
use serde_json::json;
use stayput_api::State;
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{Outcome, Strategy};

use super::fixture::{Fixture, NODES, Reconciler};
use super::objects::{eventually, search_cluster};
use crate::support::programs::send;
use stayput_standin::apiserver::ApiServer;

/// Nodes with different values cannot be in one cluster.
const SETTING: &str = "plugins.security.ssl.transport.enabled";

/// Three nodes whose engines come back on what they were told to run, and a reconciler that has
/// seen what they run on.
async fn three_pinned_nodes() -> (Fixture, Reconciler) {
    let server = ApiServer::start().await.expect("a stand-in apiserver");
    let options = ["--pin-config".to_owned()];
    let fixture = Fixture::with_options(server, &format!("{SETTING}: false"), &options).await;
    fixture.create::<SearchCluster>(search_cluster(true)).await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    // The next look comes with it.
    fixture.respec(json!({"restart": {"onConfigChange": "auto"}})).await;
    let remembers = |cluster: &SearchCluster| {
        cluster.status.as_ref().is_some_and(|status| !status.ledger.configs.is_empty())
    };
    fixture.until("what the engines run on is remembered", remembers).await;
    (fixture, reconciler)
}

/// Changes the setting on all nodes, and asks in vain for a rolling restart. Returns what is said.
async fn change(fixture: &Fixture) -> String {
    for name in NODES {
        fixture.configure(name, &format!("{SETTING}: true")).await;
        fixture.mount(name).await;
    }
    let refused = fixture.restart("r1", "rolling").await;
    assert_eq!(refused.outcome, Outcome::Aborted, "{refused:?}");
    assert!(refused.reason.contains(SETTING), "{refused:?}");
    fixture.until_blocked("needs_coordinated").await
}

#[tokio::test] // proves UPDATE-72
async fn it_waits_for_a_word_and_then_changes_all_nodes_at_once() {
    let (fixture, reconciler) = three_pinned_nodes().await;
    let says = change(&fixture).await;
    assert!(says.contains(&format!("{SETTING} changes from false to true")), "{says}");
    assert!(says.contains("kubectl stayput -n default restart logs --coordinated"), "{says}");
    for name in NODES {
        assert_eq!(fixture.starts(name).await, 1, "{name}");
    }
    fixture.respec(json!({"restart": {"allowOutage": true}})).await;
    let over = |cluster: &SearchCluster| {
        cluster.status.as_ref().is_some_and(|status| status.ledger.history.len() == 2)
    };
    let cluster = fixture.until("the outage that is allowed is made", over).await;
    let entry = &cluster.status.expect("a status").ledger.history[1];
    let expected = (Strategy::Coordinated, Outcome::Done, 3);
    assert_eq!((entry.strategy, entry.outcome, entry.nodes), expected, "{entry:?}");
    fixture.engine_until("/_cluster/health?wait_for_nodes=3&wait_for_status=green").await;
    reconciler.end().await;
}

#[tokio::test] // proves CONFIG-11
async fn an_engine_that_crashes_meanwhile_comes_back_pinned_and_stays_in_the_cluster() {
    let (fixture, reconciler) = three_pinned_nodes().await;
    let before = fixture.status("logs-1").await.run.expect("it runs");
    change(&fixture).await;
    let engine = fixture.with("logs-1", |manager| manager.engine()).expect("an engine");
    send(engine, Signal::SIGKILL);
    let run = eventually("it is back", async || {
        let status = fixture.status("logs-1").await;
        status.run.filter(|run| status.state == State::Running && run.id != before.id)
    })
    .await;
    assert_eq!(run.checksum, before.checksum, "on what it was told to run");
    fixture.engine_until("/_cluster/health?wait_for_nodes=3&wait_for_status=green").await;
    let status = fixture.status("logs-1").await;
    assert_eq!(status.config.expect("a config").drift, Some(true), "the change is mounted");
    // It is one of those that a person's word changes.
    let entry = fixture.restart("c1", "coordinated").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    fixture.engine_until("/_cluster/health?wait_for_nodes=3&wait_for_status=green").await;
    reconciler.end().await;
}
