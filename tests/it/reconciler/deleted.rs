//! Pods, the SearchCluster and the whole namespace are deleted in the middle of a restart: nothing
//! waits for them without end.

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{Direction, Ledger, Outcome};

use super::fixture::{Fixture, NODES, Reconciler};
use super::objects::{NAMESPACE, eventually};

fn ledger(cluster: &SearchCluster) -> Ledger {
    cluster.status.as_ref().map(|status| status.ledger.clone()).unwrap_or_default()
}

/// A node is being stopped, and that takes longer than the test.
async fn in_the_middle() -> (Fixture, Reconciler) {
    let fixture = Fixture::new("standin.stop_delay_ms: 600000").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    fixture.until("allocation is owed", |cluster| ledger(cluster).debts.allocation.is_some()).await;
    (fixture, reconciler)
}

async fn until_gone(fixture: &Fixture) {
    let api = fixture.api::<SearchCluster>();
    eventually("it is gone", async || api.get_opt("logs").await.ok()?.is_none().then_some(()))
        .await;
}

#[tokio::test] // proves RESTART-107
async fn a_searchcluster_that_is_deleted_says_what_it_waits_for_and_goes_with_its_pods() {
    let (fixture, reconciler) = in_the_middle().await;
    let once = DeleteParams::default();
    fixture.api::<SearchCluster>().delete("logs", &once).await.expect("it is taken");
    let message = |cluster: &SearchCluster| {
        let status = cluster.status.as_ref().filter(|status| status.report.phase == "Deleting");
        status.map(|status| status.report.message.clone().unwrap_or_default())
    };
    let cluster = fixture.until("it waits", |cluster| message(cluster).is_some()).await;
    let message = message(&cluster).expect("it waits");
    assert!(message.contains("stayput.dev/debts") && message.contains("pods"), "{message}");
    for name in NODES {
        fixture.api::<Pod>().delete(name, &once).await.expect("it is taken");
    }
    until_gone(&fixture).await;
    reconciler.end().await;
}

#[tokio::test] // proves RESTART-107
async fn a_namespace_that_is_deleted_in_the_middle_of_a_restart_is_gone_at_once() {
    let (fixture, reconciler) = in_the_middle().await;
    let namespaces: Api<Namespace> = Api::all(fixture.client.clone());
    namespaces.delete(NAMESPACE, &DeleteParams::default()).await.expect("it is taken");
    until_gone(&fixture).await;
    reconciler.end().await;
}

#[tokio::test] // proves RESTART-106
async fn a_pod_that_is_gone_for_good_ends_a_coordinated_restart_that_has_gone_forward() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.configure("logs-2", "standin.start_delay_ms: 600000").await;
    fixture.ask("r1", "coordinated").await;
    fixture
        .until("the others have joined", |cluster| {
            ledger(cluster).restart.is_some_and(|one| one.direction == Direction::Forward)
        })
        .await;
    // The shorter timeout counts from their stop, and for them as well: they must be back before.
    for name in ["logs-0", "logs-1"] {
        eventually("it is ready again", async || {
            let status = fixture.status(name).await;
            (status.starts == 2 && status.ready == Some(true)).then_some(())
        })
        .await;
    }
    fixture.respec(json!({ "restart": { "phaseTimeout": "10s" } })).await;
    fixture.api::<Pod>().delete("logs-2", &DeleteParams::default()).await.expect("it is taken");
    fixture.with("logs-2", |manager| manager.crash());
    let entry = fixture.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Aborted, 2), "{entry:?}");
    assert!(entry.reason.contains("logs-2") && entry.reason.contains("gone"), "{entry:?}");
    fixture.until("nothing is owed", |cluster| ledger(cluster).debts.is_empty()).await;
    let settings = fixture.engine_until("/_cluster/settings?flat_settings=true").await;
    assert_eq!(settings["persistent"], json!({}));
    reconciler.end().await;
}
