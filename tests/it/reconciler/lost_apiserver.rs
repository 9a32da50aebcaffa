//! The apiserver is lost for longer than a Lease is valid, in the middle of a restart.

use serde_json::json;
use stayput_reconciler::controller::{Election, Settings};
use stayput_restart::Outcome;

use super::fixture::{Fixture, NODES, Reconciler};
use super::objects::{NAMESPACE, eventually};
use stayput_standin::apiserver::{Fault, How};

/// Takes the apiserver away while a node is being stopped, until its engine was started again.
pub(super) async fn lose_until_started_again(fixture: &Fixture) {
    let node = fixture.until_stopping().await;
    let before = fixture.server.counts();
    fixture.server.inject(Fault::new(How::LoseRequest).times(u32::MAX));
    fixture.server.cut_watches();
    eventually("its engine was started again", async || {
        (fixture.status(node).await.starts == 2).then_some(())
    })
    .await;
    fixture.server.clear_faults();
    let since = fixture.server.counts().since(&before);
    assert!(since.matching(|one| one.code == 0) > 0, "{since:?}");
}

#[tokio::test]
async fn an_engine_that_was_stopped_is_started_also_when_the_lease_has_expired() {
    let fixture = Fixture::new("").await;
    // The Lease has expired before the engine is stopped.
    fixture.respec(json!({ "restart": { "drain": "12s" } })).await;
    let election = Election { namespace: NAMESPACE.into(), name: "stayput-reconciler".into() };
    let settings =
        Settings { name: "test".into(), election: Some(election), ..Settings::default() };
    let reconciler = Reconciler::start_with(fixture.client.clone(), settings);
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    lose_until_started_again(&fixture).await;
    fixture.respec(json!({ "restart": { "drain": "0s" } })).await;
    let entry = fixture.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    for name in NODES {
        assert_eq!(fixture.starts(name).await, 2, "{name}");
    }
    reconciler.end().await;
}
