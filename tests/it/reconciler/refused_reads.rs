//! The apiserver answers, and refuses what a look needs.

use stayput_restart::Outcome;

use super::fixture::{Fixture, NODES, Reconciler};
use super::objects::eventually;
use stayput_standin::apiserver::{Fault, How};

#[tokio::test] // proves RESTART-30
async fn an_engine_that_was_stopped_is_started_although_the_apiserver_refuses() {
    let fixture = Fixture::new("standin.stop_delay_ms: 3000").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    let node = fixture.until_stopping().await;
    // A role was taken away.
    let refused = Fault::new(How::Refuse(403)).verb("get").resource("searchclusters");
    fixture.server.inject(refused.times(u32::MAX));
    eventually("its engine was started again", async || {
        (fixture.status(node).await.starts == 2).then_some(())
    })
    .await;
    fixture.server.clear_faults();
    let entry = fixture.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    for name in NODES {
        assert_eq!(fixture.starts(name).await, 2, "{name}");
    }
    reconciler.end().await;
}
