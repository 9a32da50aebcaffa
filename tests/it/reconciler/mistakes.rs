//! Mistakes of users and of other programs: each is reported, affects nothing else, and leaves no
//! node stopped.

use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};
use stayput_kube_access::cluster::{SearchCluster, SearchClusterStatus};
use stayput_restart::{MemberStep, Outcome, Restart, annotation};
use tokio::time::sleep;

use super::fixture::{Fixture, Reconciler};
use super::objects::{NAMESPACE, eventually, search_cluster};
use stayput_standin::apiserver::{Fault, How};

async fn done(fixture: &Fixture, id: &str) {
    let entry = fixture.until_over(id).await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
}

#[tokio::test]
async fn a_newer_ledger_is_never_overwritten_by_an_older_one() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.server.client());
    fixture.until_seen().await;
    let held = Fault::new(How::Hold).verb("patch").resource("searchclusters");
    fixture.server.inject(held);
    let api = fixture.api::<SearchCluster>();
    let mut cluster = fixture.cluster().await;
    cluster.spec.paused = true;
    let word = (annotation::PHASE.to_owned(), "schedule-rolling".to_owned());
    cluster.metadata.annotations.get_or_insert_default().extend([word]);
    api.replace("logs", &PostParams::default(), &cluster).await.expect("it is taken");
    // A request is counted when it is answered; this one is held back.
    eventually("the reconciler patches", async || fixture.server.is_faultless().then_some(()))
        .await;
    // It has decided, and waits for its answer. Now another client writes the ledger.
    let mut cluster = fixture.cluster().await;
    let status: &mut SearchClusterStatus = cluster.status.as_mut().expect("a status");
    status.ledger.handled.push("foreign".into());
    api.replace_status("logs", &PostParams::default(), &cluster).await.expect("it is taken");
    // Longer than the reconciler waits before it writes the status, so that the status is due right
    // after the patch.
    sleep(Duration::from_secs(6)).await;
    fixture.server.release();
    let cluster = fixture
        .until("the request is taken up", |cluster| {
            let status = cluster.status.as_ref().expect("a status");
            status.ledger.restart.is_some()
                && status.observed_generation == cluster.metadata.generation
        })
        .await;
    let handled = cluster.status.expect("a status").ledger.handled;
    assert!(handled.contains(&"foreign".to_owned()), "{handled:?}");
    fixture.respec(json!({"paused": false})).await;
    let over = fixture
        .until("it is over", |cluster| {
            cluster.status.as_ref().is_some_and(|status| !status.ledger.history.is_empty())
        })
        .await;
    let ledger = over.status.expect("a status").ledger;
    assert_eq!(ledger.history[0].outcome, Outcome::Done);
    assert!(ledger.handled.contains(&"foreign".to_owned()), "{:?}", ledger.handled);
    reconciler.end().await;
}

fn restart(cluster: &SearchCluster) -> Option<&Restart> {
    cluster.status.as_ref()?.ledger.restart.as_ref()
}

/// Begins a restart, and makes the spec invalid while the first engine is stopping.
async fn spoiled() -> (Fixture, Reconciler) {
    let fixture = Fixture::new("standin.stop_delay_ms: 1500").await;
    let reconciler = Reconciler::start(fixture.server.client());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    fixture.until_stopping().await;
    fixture.respec(json!({"restart": {"drain": "2m"}})).await;
    (fixture, reconciler)
}

/// Waits until the node is back, the others were not stopped, and the status has the reason.
async fn until_held(fixture: &Fixture) {
    let cluster = fixture
        .until("the node is back, and no other is stopped", |cluster| {
            restart(cluster).is_some_and(|one| {
                let is_done = |node: &stayput_restart::Member| node.step == MemberStep::Finished;
                one.members.iter().any(is_done)
                    && !one.members.iter().any(|node| node.is_under_way())
            })
        })
        .await;
    assert!(restart(&cluster).is_some(), "it is not over");
    let sentence = fixture.until_blocked("invalid_spec").await;
    assert!(sentence.contains("spec.restart.drain"), "{sentence}");
    fixture.engine_until("/_cluster/health?wait_for_nodes=3&wait_for_status=green").await;
}

#[tokio::test]
async fn a_spec_made_invalid_in_the_middle_keeps_no_node_stopped_and_put_right_goes_on() {
    let (fixture, reconciler) = spoiled().await;
    until_held(&fixture).await;
    fixture.respec(json!({"restart": {"drain": "0s"}})).await;
    done(&fixture, "r1").await;
    reconciler.end().await;
}

#[tokio::test]
async fn with_an_invalid_spec_another_reconciler_ends_what_was_begun_and_lets_go() {
    let (fixture, reconciler) = spoiled().await;
    reconciler.kill().await;
    let reconciler = Reconciler::start(fixture.server.client());
    until_held(&fixture).await;
    let api = fixture.api::<SearchCluster>();
    api.delete("logs", &DeleteParams::default()).await.expect("it is taken");
    eventually("it is gone", async || {
        api.get_opt("logs").await.expect("an answer").is_none().then_some(())
    })
    .await;
    let settings = fixture.engine_until("/_cluster/settings?flat_settings=true").await;
    assert_eq!(settings["persistent"], json!({}));
    reconciler.end().await;
}

#[tokio::test]
async fn a_searchcluster_that_cannot_be_read_hides_no_other() {
    let fixture = Fixture::new("").await;
    let mut bad = search_cluster(true);
    bad["metadata"]["name"] = json!("bad");
    bad["spec"]["pods"]["selector"]["matchLabels"]["app"] = json!("bad");
    fixture.create::<SearchCluster>(bad).await;
    let kind = ApiResource::erase::<SearchCluster>(&());
    let any: Api<DynamicObject> = Api::namespaced_with(fixture.client.clone(), NAMESPACE, &kind);
    let write = async |conditions: Value| {
        let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
        any.patch_status("bad", &PatchParams::default(), &patch).await.expect("it is taken");
    };
    write(json!([{
        "type": "Blocked", "status": "True", "reason": "r", "message": "m",
        "lastTransitionTime": "yesterday",
    }]))
    .await;
    assert!(fixture.api::<SearchCluster>().get("bad").await.is_err(), "it can be read");
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    done(&fixture, "r1").await;
    eventually("an event", async || {
        let events = fixture.api::<Event>().list(&ListParams::default()).await.ok()?;
        let ours = |event: &&Event| event.reason.as_deref() == Some("DecodeFailed");
        let event = events.items.iter().find(ours)?;
        assert_eq!(event.involved_object.name.as_deref(), Some("bad"));
        Some(())
    })
    .await;
    write(json!([])).await;
    eventually("it is reconciled when it can be read", async || {
        let cluster = fixture.api::<SearchCluster>().get("bad").await.ok()?;
        cluster.status?.observed_generation
    })
    .await;
    reconciler.end().await;
}

#[tokio::test]
async fn pods_that_must_not_be_listed_are_told_with_what_is_missing() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.server.client());
    fixture.until_seen().await;
    reconciler.end().await;
    let forbidden = Fault::new(How::Refuse(403)).verb("list").resource("pods").times(10_000);
    fixture.server.inject(forbidden);
    let reconciler = Reconciler::start(fixture.server.client());
    let sentence = fixture.until_blocked("pods_unlisted").await;
    assert!(sentence.contains("list and watch the pods of namespace default"), "{sentence}");
    assert!(sentence.contains("roles of deploy/"), "{sentence}");
    fixture.server.clear_faults();
    fixture.ask("r1", "rolling").await;
    done(&fixture, "r1").await;
    reconciler.end().await;
}

#[tokio::test]
async fn what_keeps_failing_is_told_and_goes_on_once_it_works() {
    let fixture = Fixture::new("standin.start_delay_ms: 8000").await;
    let reconciler = Reconciler::start(fixture.server.client());
    fixture.until_seen().await;
    let broken = Fault::new(How::Refuse(500)).verb("patch").resource("pods").times(10_000);
    fixture.server.inject(broken);
    fixture.ask("r1", "rolling").await;
    fixture
        .until("the call that fails", |cluster| {
            let report = cluster.status.as_ref().map(|status| &status.report);
            let message = report.and_then(|report| report.message.as_deref());
            message.is_some_and(|message| message.contains("refused to patch pods logs-"))
        })
        .await;
    fixture.server.clear_faults();
    done(&fixture, "r1").await;
    reconciler.end().await;
}

/// A GitOps tool writes what it applies again, whenever it differs.
#[tokio::test] // proves RESTART-99
async fn a_phase_that_is_applied_again_and_again_restarts_once() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.server.client());
    fixture.until_seen().await;
    let apply = async |phase: Option<&str>| {
        let applied = json!({"metadata": {"annotations": {annotation::PHASE: phase}}});
        let last = "kubectl.kubernetes.io/last-applied-configuration";
        let annotations = json!({annotation::PHASE: phase, last: applied.to_string()});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        let api = fixture.api::<SearchCluster>();
        api.patch("logs", &PatchParams::default(), &patch).await.expect("it is taken");
    };
    let ended = |cluster: &SearchCluster, count: usize| {
        cluster.status.as_ref().is_some_and(|status| {
            let ledger = &status.ledger;
            ledger.history.len() == count && ledger.restart.is_none() && ledger.queued.is_none()
        })
    };
    apply(Some("schedule-rolling")).await;
    fixture.until("the phase is carried out", |cluster| ended(cluster, 1)).await;
    apply(Some("schedule-rolling")).await;
    let told = fixture
        .until("it says why there is no second", |cluster| {
            let message = cluster.status.as_ref().and_then(|one| one.report.message.as_deref());
            message.is_some_and(|text| text.contains("is carried out once"))
        })
        .await;
    let status = told.status.expect("a status");
    assert!(ended(&fixture.cluster().await, 1), "{:?}", status.ledger);
    let message = status.report.message.expect("a message");
    assert!(message.contains("commit stayput.dev/restart-request with a new id"), "{message}");
    // The tool has nothing to correct: what it applies is there.
    let annotations = told.metadata.annotations.expect("annotations");
    assert_eq!(annotations.get(annotation::PHASE).map(String::as_str), Some("schedule-rolling"));
    // Removed from the configuration, and put into it later: a new request.
    apply(None).await;
    fixture
        .until("the phase is forgotten", |cluster| {
            cluster.status.as_ref().is_some_and(|status| status.ledger.kept_phase.is_none())
        })
        .await;
    apply(Some("schedule-rolling")).await;
    fixture.until("the second is carried out", |cluster| ended(cluster, 2)).await;
    reconciler.end().await;
}
