//! Disabled rules: by the annotation that is known from ECK.

use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{Condition, annotation};

use super::fixture::{Fixture, Reconciler};
use super::objects::eventually;

/// The condition's message, if its status is this.
fn disabled(cluster: &SearchCluster, status: &str, reason: &str) -> Option<Condition> {
    let report = &cluster.status.as_ref()?.report;
    let found = report.conditions.iter().find(|one| one.kind == "PredicatesDisabled")?;
    (found.status == status && found.reason == reason).then(|| found.clone())
}

async fn until(fixture: &Fixture, status: &str, reason: &str) -> String {
    let what = format!("PredicatesDisabled is {status} {reason}");
    let cluster = fixture.until(&what, |cluster| disabled(cluster, status, reason).is_some()).await;
    disabled(&cluster, status, reason).expect("it is").message
}

#[tokio::test] // proves RULE-18
async fn what_is_off_is_shown_as_soon_as_it_is_said_and_until_it_is_taken_back() {
    // At rest no other event starts an evaluation.
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    until(&fixture, "False", "NothingDisabled").await;

    fixture
        .annotate(annotation::DISABLE, Some("one_master_at_a_time, requires_started_replica"))
        .await;
    let message = until(&fixture, "True", "Disabled").await;
    assert!(message.starts_with("one_master_at_a_time is not evaluated"), "{message}");
    assert!(message.contains(&format!("{}-", annotation::DISABLE)), "{message}");
    assert!(message.contains("the nearest name is require_started_replica"), "{message}");
    eventually("the unknown name is reported", async || {
        let events = fixture.api::<Event>().list(&ListParams::default()).await.ok()?;
        let messages =
            events.items.iter().filter(|event| event.reason.as_deref() == Some("InputIgnored"));
        let messages: Vec<&str> = messages.filter_map(|event| event.message.as_deref()).collect();
        (messages.len() == 1 && messages[0].contains("\"requires_started_replica\"")).then_some(())
    })
    .await;

    fixture.annotate(annotation::DISABLE, None).await;
    until(&fixture, "False", "NothingDisabled").await;
    reconciler.end().await;
}
