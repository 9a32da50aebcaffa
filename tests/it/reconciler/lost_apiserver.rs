//! The apiserver is lost in the middle of a restart: for longer than a Lease is valid, or it hangs.

use std::time::Duration;

use serde_json::json;
use stayput_controller::{Election, Settings};
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

#[tokio::test] // proves RESTART-30
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

/// An apiserver that accepts requests and does not answer holds up each call for ten seconds. Starts do not
/// wait for that, whichever call it is.
#[tokio::test] // proves RESTART-30
async fn an_engine_that_was_stopped_is_started_at_once_while_the_apiserver_hangs() {
    let fixture = Fixture::new("standin.stop_delay_ms: 1500").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    let hangs = || Fault::new(How::Hang).times(u32::MAX);
    let mut stopped_before = Vec::new();
    for fault in [hangs(), hangs().verb("get").resource("secrets")] {
        let node = fixture.until_stopping_after(&stopped_before).await;
        stopped_before.push(node);
        fixture.server.inject(fault);
        fixture.server.cut_watches();
        let status = eventually("its engine was started again", async || {
            Some(fixture.status(node).await).filter(|status| status.starts == 2)
        })
        .await;
        fixture.server.clear_faults();
        let at = |text: &str| humantime::parse_rfc3339(text).expect("a moment");
        let stopped = at(&status.last_exit.expect("it was stopped").at);
        let started = at(&status.run.expect("it runs").started_at);
        let wait = started.duration_since(stopped).expect("it is later");
        assert!(wait < Duration::from_secs(5), "{node}: {wait:?}");
    }
    let entry = fixture.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    reconciler.end().await;
}
