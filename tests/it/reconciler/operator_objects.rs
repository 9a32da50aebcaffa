//! The object of an operator: people ask there for a restart, and disable rules.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::operator_object::api_resource;
use stayput_restart::{OperatorKind, Outcome, annotation};
use stayput_standin::apiserver::Asked;

use super::fixture::{Fixture, NODES, Reconciler};
use super::objects::{NAMESPACE, eventually};

/// The definition of `Elasticsearch`, which takes any field.
async fn define(fixture: &Fixture) {
    let kind = OperatorKind::Eck;
    let definition = json!({
        "metadata": {"name": format!("{}.{}", kind.plural(), kind.group())},
        "spec": {
            "group": kind.group(), "scope": "Namespaced",
            "names": {"plural": kind.plural(), "kind": kind.object()},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    });
    let definition: CustomResourceDefinition =
        serde_json::from_value(definition).expect("a definition");
    let all: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
    all.create(&PostParams::default(), &definition).await.expect("it is taken");
}

fn objects(fixture: &Fixture) -> Api<DynamicObject> {
    Api::namespaced_with(fixture.client.clone(), NAMESPACE, &api_resource(OperatorKind::Eck))
}

async fn create(fixture: &Fixture, annotations: Value) {
    let object = json!({
        "apiVersion": "elasticsearch.k8s.elastic.co/v1", "kind": "Elasticsearch",
        "metadata": {"name": "logs", "annotations": annotations}, "spec": {"version": "8.19.0"},
    });
    let object: DynamicObject = serde_json::from_value(object).expect("an object");
    objects(fixture).create(&PostParams::default(), &object).await.expect("it is created");
}

/// Changes an annotation of the `Elasticsearch`.
async fn annotate(fixture: &Fixture, key: &str, value: Option<&str>) {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
    objects(fixture).patch("logs", &PatchParams::default(), &patch).await.expect("it is taken");
}

/// Gives the pods the label of ECK.
async fn label(fixture: &Fixture) {
    for name in NODES {
        let labels = json!({OperatorKind::Eck.label(): "logs"});
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        let pods = fixture.api::<Pod>();
        pods.patch(name, &PatchParams::default(), &patch).await.expect("it is taken");
    }
}

/// Number of restarts that have ended.
fn ended(cluster: &SearchCluster) -> usize {
    cluster.status.as_ref().map_or(0, |status| status.ledger.history.len())
}

/// The phase that the ledger has seen on the `Elasticsearch`.
fn seen(cluster: &SearchCluster) -> Option<&str> {
    let phases = &cluster.status.as_ref()?.ledger.operator_phases;
    phases.get("Elasticsearch logs").map(String::as_str)
}

fn message(cluster: &SearchCluster) -> &str {
    let report = cluster.status.as_ref().map(|status| &status.report);
    report.and_then(|report| report.message.as_deref()).unwrap_or_default()
}

#[tokio::test] // proves RESTART-165
async fn a_phase_on_an_elasticsearch_restarts_the_nodes_once_and_stays_there() {
    let fixture = Fixture::new("").await;
    label(&fixture).await;
    let reconciler = Reconciler::start(fixture.client.clone());
    // Without the definition, nothing is asked for and nothing waits.
    let unread = "annotations on Elasticsearch logs are not read: Elasticsearch logs is not there";
    fixture.until("its absence is told", |cluster| message(cluster) == unread).await;
    let entry = fixture.restart("r1", "rolling").await;
    assert_eq!(entry.outcome, Outcome::Done, "{entry:?}");
    reconciler.end().await;

    define(&fixture).await;
    create(&fixture, json!({annotation::PHASE: "schedule"})).await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until("the old phase is seen", |cluster| seen(cluster) == Some("schedule")).await;
    eventually("it is told that the old phase asks for nothing", async || {
        let events = fixture.api::<Event>().list(&ListParams::default()).await.ok()?;
        let is_adopted = |event: &Event| {
            let told = event.message.as_deref().unwrap_or_default();
            event.reason.as_deref() == Some("RequestAdopted")
                && told.starts_with("The restart-phase schedule on Elasticsearch logs is ignored")
        };
        events.items.iter().any(is_adopted).then_some(())
    })
    .await;

    let counts = fixture.server.counts();
    let began = Instant::now();
    annotate(&fixture, annotation::PHASE, Some("schedule-rolling")).await;
    let under_way = |cluster: &SearchCluster| {
        cluster.status.as_ref().is_some_and(|status| status.ledger.restart.is_some())
    };
    fixture.until("the restart is under way", under_way).await;
    assert!(began.elapsed() < Duration::from_secs(30), "a watch tells it: {:?}", began.elapsed());
    let over = fixture.until("the restart is over", |cluster| ended(cluster) == 2).await;
    let history = over.status.expect("a status").ledger.history;
    assert_eq!((history[1].outcome, history[1].nodes), (Outcome::Done, 3), "{history:?}");
    for name in NODES {
        assert_eq!(fixture.starts(name).await, 3, "two restarts of {name}");
    }

    // Another write of the object asks for nothing, and a phase that was absent does again.
    annotate(&fixture, "example.org/touched", Some("1")).await;
    annotate(&fixture, annotation::PHASE, None).await;
    fixture.until("no phase is seen", |cluster| seen(cluster) == Some("")).await;
    assert_eq!(ended(&fixture.cluster().await), 2);
    annotate(&fixture, annotation::PHASE, Some("schedule-rolling")).await;
    fixture.until("the next restart is over", |cluster| ended(cluster) == 3).await;

    let object = objects(&fixture).get("logs").await.expect("it is there");
    assert_eq!(
        object.metadata.annotations.unwrap_or_default()[annotation::PHASE],
        "schedule-rolling"
    );
    let ours = |asked: &Asked| {
        asked.resource == "elasticsearches" && !["get", "watch"].contains(&asked.verb.as_str())
    };
    // Four of the test.
    assert_eq!(fixture.server.counts().since(&counts).matching(ours), 4);
    reconciler.end().await;
}

#[tokio::test] // proves RESTART-166, RULE-18
async fn a_rule_that_is_disabled_on_an_elasticsearch_is_shown_with_that_object() {
    let fixture = Fixture::new("").await;
    label(&fixture).await;
    define(&fixture).await;
    create(&fixture, json!({})).await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until("the object is seen", |cluster| seen(cluster) == Some("")).await;
    let disabled = |cluster: &SearchCluster| {
        let report = &cluster.status.as_ref()?.report;
        let mut conditions = report.conditions.iter();
        conditions.find(|one| one.kind == "PredicatesDisabled").map(|one| one.message.clone())
    };
    annotate(&fixture, annotation::DISABLE, Some("one_master_at_a_time")).await;
    let wanted = format!(
        "one_master_at_a_time is not evaluated; to enable again: kubectl annotate elasticsearch logs \
         --namespace {NAMESPACE} {}-",
        annotation::DISABLE
    );
    fixture.until("it is shown", |cluster| disabled(cluster).as_ref() == Some(&wanted)).await;
    annotate(&fixture, annotation::DISABLE, None).await;
    fixture.until("it is enabled", |cluster| disabled(cluster).as_deref() == Some("")).await;
    reconciler.end().await;
}
