//! Problems are reported, and no node is stopped meanwhile; when they are solved, it continues by
//! itself.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::Outcome;

use super::fixture::{Fixture, NODES, Reconciler};
use super::objects::{KEY, NAMESPACE, search_cluster, secret};
use crate::support::pki::Pki;

/// Waits until the rule is reported, checks that nothing was stopped, and returns the message.
async fn refused(fixture: &Fixture, rule: &str) -> String {
    refused_for(fixture, rule, &NODES).await
}

/// The same for a rule that holds only these nodes.
async fn refused_for(fixture: &Fixture, rule: &str, nodes: &[&str]) -> String {
    let before = fixture.processes();
    let sentence = fixture.until_blocked(rule).await;
    let processes = fixture.processes();
    for name in nodes {
        assert_eq!(processes[*name], before[*name], "{name}");
        assert_eq!(fixture.starts(name).await, 1, "{name}");
    }
    sentence
}

async fn done(fixture: &Fixture, id: &str) {
    let entry = fixture.until_over(id).await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
}

#[tokio::test] // proves RESTART-150
async fn a_wrong_key_is_told_and_a_right_one_is_taken_up() {
    let fixture = Fixture::new("").await;
    fixture.reveal("manager-key", json!({"key": "another key of thirty-two bytes!"})).await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    let sentence = refused(&fixture, "manager_unreachable").await;
    assert!(sentence.contains("unauthenticated"), "{sentence}");
    fixture.reveal("manager-key", json!({"key": KEY})).await;
    done(&fixture, "r1").await;
    reconciler.end().await;
}

#[tokio::test]
async fn a_wrong_ca_is_told_with_its_secret_and_a_right_one_is_taken_up() {
    let fixture = Fixture::new("").await;
    let read = |pki: &Pki| std::fs::read_to_string(pki.file("ca")).expect("a file");
    fixture.reveal("manager-ca", json!({"ca.crt": read(&Pki::named(&["stayput"]))})).await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    let sentence = refused(&fixture, "manager_unreachable").await;
    assert!(sentence.contains("Secret manager-ca"), "{sentence}");
    fixture.reveal("manager-ca", json!({"ca.crt": read(&fixture.pki)})).await;
    done(&fixture, "r1").await;
    reconciler.end().await;
}

#[tokio::test]
async fn credentials_have_to_allow_their_use() {
    let fixture = Fixture::new("").await;
    let api = fixture.api::<Secret>();
    api.delete("manager-key", &DeleteParams::default()).await.expect("it is deleted");
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    let sentence = refused(&fixture, "manager_unreachable").await;
    assert!(sentence.contains("Secret manager-key"), "{sentence}");
    fixture.create::<Secret>(secret("manager-key", None, [("key", KEY)])).await;
    fixture
        .until("how to allow it", |cluster| {
            let status = cluster.status.as_ref();
            let message = status.and_then(|status| status.report.message.as_deref());
            message
                .is_some_and(|message| message.contains("annotate --overwrite secret manager-key"))
        })
        .await;
    let allow = json!({"metadata": {"annotations": {"stayput.dev/allow": "logs"}}});
    let (name, params) = ("manager-key", PatchParams::default());
    api.patch(name, &params, &Patch::Merge(allow)).await.expect("it is taken");
    done(&fixture, "r1").await;
    reconciler.end().await;
}

#[tokio::test] // proves RESTART-150
async fn an_absent_source_is_unknown_and_named() {
    let fixture = Fixture::new("").await;
    let api = fixture.api::<Secret>();
    let config = api.get("logs-1-config").await.expect("it is there");
    api.delete("logs-1-config", &DeleteParams::default()).await.expect("it is deleted");
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    let sentence = refused_for(&fixture, "source_absent", &["logs-1"]).await;
    assert!(sentence.contains("Secret logs-1-config is absent"), "{sentence}");
    let data = config.data.expect("data");
    let text = String::from_utf8(data["elasticsearch.yml"].0.clone()).expect("UTF-8");
    let files = [("elasticsearch.yml", text.as_str())];
    fixture.create::<Secret>(secret("logs-1-config", None, files)).await;
    done(&fixture, "r1").await;
    reconciler.end().await;
}

#[tokio::test]
async fn an_invalid_spec_has_a_condition_and_nothing_is_done() {
    let fixture = Fixture::bare("").await;
    let mut cluster = search_cluster(true);
    cluster["spec"]["restart"] = json!({"drain": "2m", "phaseTimeout": "1m"});
    fixture.create::<SearchCluster>(cluster).await;
    let reconciler = Reconciler::start(fixture.client.clone());
    let sentence = refused(&fixture, "invalid_spec").await;
    assert!(sentence.contains("spec.restart.drain"), "{sentence}");
    fixture.ask("r1", "rolling").await;
    fixture.respec(json!({"restart": {"drain": "0s"}})).await;
    done(&fixture, "r1").await;
    reconciler.end().await;
}

#[tokio::test] // proves DOCTOR-5
async fn while_the_apiserver_drops_fields_nothing_is_begun_and_it_is_told() {
    let fixture = Fixture::bare("").await;
    let crds: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/ledger";
    let patch = |operation: serde_json::Value| {
        Patch::Json::<()>(serde_json::from_value(json!([operation])).expect("a patch"))
    };
    let change = async |operation| {
        let name = "searchclusters.stayput.dev";
        crds.patch(name, &PatchParams::default(), &patch(operation)).await.expect("it is taken")
    };
    let whole = change(json!({"op": "test", "path": "/kind", "value": "CustomResourceDefinition"}));
    let ledger = json!(whole.await).pointer(schema).expect("the field").clone();
    change(json!({"op": "remove", "path": schema})).await;
    fixture.create::<SearchCluster>(search_cluster(true)).await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.ask("r1", "rolling").await;
    let sentence = refused(&fixture, "outdated_definition").await;
    assert!(sentence.contains("no status.ledger,"), "{sentence}");
    change(json!({"op": "add", "path": schema, "value": ledger})).await;
    done(&fixture, "r1").await;
    reconciler.end().await;
}

#[tokio::test] // proves RESTART-150
async fn no_pods_and_pods_of_two_are_told() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    let select = async |app: &str| {
        fixture.respec(json!({"pods": {"selector": {"matchLabels": {"app": app}}}})).await;
    };
    let processes = fixture.processes();
    select("log").await;
    let none = |cluster: &SearchCluster| {
        let conditions = &cluster.status.as_ref()?.report.conditions;
        let available = conditions.iter().find(|one| one.kind == "Available")?;
        (available.reason == "NoPods").then(|| available.clone())
    };
    let cluster = fixture.until("it is told", |cluster| none(cluster).is_some()).await;
    let condition = none(&cluster).expect("it is told");
    let told = (&*condition.status, &*condition.message);
    assert_eq!(told, ("Unknown", "the selector matches no pods"));
    fixture.ask("r0", "rolling").await;
    let entry = fixture.until_over("r0").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Aborted, 0), "{entry:?}");
    assert_eq!(entry.reason, "it selects no node that may be restarted");
    assert_eq!(fixture.processes(), processes);
    select("logs").await;
    let mut other = search_cluster(true);
    other["metadata"]["name"] = json!("logs-too");
    fixture.create::<SearchCluster>(other).await;
    fixture.ask("r1", "rolling").await;
    let sentence = refused(&fixture, "overlapping_selectors").await;
    assert!(sentence.contains("logs-too"), "{sentence}");
    let api = fixture.api::<SearchCluster>();
    api.delete("logs-too", &DeleteParams::default()).await.expect("it is deleted");
    done(&fixture, "r1").await;
    reconciler.end().await;
}

#[tokio::test] // proves RESTART-153
async fn an_owner_that_is_about_to_replace_the_pods_is_left_to_it() {
    let fixture = Fixture::new("").await;
    let set: StatefulSet = fixture
        .create(json!({
            "metadata": {"name": "logs", "namespace": NAMESPACE},
            "spec": {
                "serviceName": "logs",
                "selector": {"matchLabels": {"app": "logs"}},
                "template": {
                    "metadata": {"labels": {"app": "logs"}},
                    "spec": {"containers": [{"name": "search", "image": "search"}]},
                },
            },
        }))
        .await;
    let uid = set.metadata.uid.expect("a uid");
    let owned = json!({"metadata": {
        "labels": {"controller-revision-hash": "logs-1"},
        "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "logs", "uid": uid,
            "controller": true,
        }],
    }});
    for name in NODES {
        let (api, patch) = (fixture.api::<Pod>(), Patch::Merge(&owned));
        api.patch(name, &PatchParams::default(), &patch).await.expect("it is taken");
    }
    let api = fixture.api::<StatefulSet>();
    // As its controller does when it has seen the set.
    let revise = async |revision: &str| {
        let seen = api.get("logs").await.expect("it is there").metadata.generation;
        let status = json!({"updateRevision": revision, "observedGeneration": seen, "replicas": 3});
        let status = Patch::Merge(json!({"status": status}));
        api.patch_status("logs", &PatchParams::default(), &status).await.expect("it is taken");
    };
    revise("logs-2").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    let sentence = refused(&fixture, "owner_will_replace").await;
    assert!(
        sentence.contains(&format!("kubectl -n {NAMESPACE} rollout status statefulset/logs")),
        "{sentence}"
    );
    revise("logs-1").await;
    done(&fixture, "r1").await;

    // Another template, and pods that are replaced only after somebody has deleted them.
    let edit = Patch::Merge(json!({"spec": {
        "updateStrategy": {"type": "OnDelete", "rollingUpdate": null},
        "template": {"metadata": {"labels": {"edited": "true"}}},
    }}));
    api.patch("logs", &PatchParams::default(), &edit).await.expect("it is taken");
    revise("logs-2").await;
    fixture.ask("r2", "rolling").await;
    done(&fixture, "r2").await;
    reconciler.end().await;
}

#[tokio::test]
async fn a_request_that_was_there_before_the_first_look_is_left_alone() {
    let fixture = Fixture::new("").await;
    fixture.ask("old", "rolling").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture
        .until("it is adopted", |cluster| {
            cluster.status.as_ref().is_some_and(|status| status.ledger.has_handled("old"))
        })
        .await;
    let entry = fixture.restart("new", "rolling").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    let status = fixture.cluster().await.status.expect("a status");
    assert_eq!(status.ledger.history.len(), 1);
    reconciler.end().await;
}
