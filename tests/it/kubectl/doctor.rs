//! `doctor`: what it reads, what it prints, and how it ends.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use stayput_standin::apiserver::{Fault, How};

use super::fixture::{Fixture, idle};
use super::forecast::{NOW, reconciler};
use crate::support::pki::Pki;

/// A reconciler that is not there.
const NOBODY: &str = "--reconciler http://127.0.0.1:1";

async fn create<K>(fixture: &Fixture, namespace: &str, object: Value) -> K
where
    K: Resource<Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
    K::DynamicType: Default,
{
    let api: Api<K> = Api::namespaced(fixture.client.clone(), namespace);
    let object: K = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap()
}

/// `logs` with three pods of a StatefulSet, the manager in each, and a reconciler beside it; its
/// address.
async fn healthy() -> (Fixture, String) {
    let fixture = Fixture::empty().await;
    fixture.declare("logs").await;
    let set = json!({
        "metadata": {"name": "logs"},
        "spec": {
            "replicas": 3, "serviceName": "logs", "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {"app": "logs"}},
            "template": {"metadata": {"labels": {"app": "logs"}}, "spec": {"containers": []}},
        },
    });
    let set: StatefulSet = create(&fixture, "default", set).await;
    for number in 0..3 {
        let pod = json!({
            "metadata": {
                "name": format!("logs-{number}"), "labels": {"app": "logs"},
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "logs",
                    "uid": set.metadata.uid, "controller": true,
                }],
            },
            "spec": {
                "containers": [{
                    "name": "search", "image": "search",
                    "command": ["stayput", "run", "--state-dir=/state", "--", "search"],
                    "volumeMounts": [{"name": "state", "mountPath": "/state"}],
                }],
                "volumes": [{"name": "state", "emptyDir": {}}],
            },
        });
        create::<Pod>(&fixture, "default", pod).await;
    }
    let mut status = idle();
    status["observedGeneration"] = json!(1);
    fixture.status(status).await;
    let ca = std::fs::read_to_string(Pki::named(&["stayput"]).file("ca")).unwrap();
    let ca = json!({"metadata": {"name": "ca"}, "stringData": {"ca.crt": ca}});
    create::<Secret>(&fixture, "default", ca).await;
    let budget = json!({
        "metadata": {"name": "logs"}, "spec": {"selector": {"matchLabels": {"app": "logs"}}},
    });
    create::<PodDisruptionBudget>(&fixture, "default", budget).await;
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(fixture.client.clone());
    let stayput = serde_json::from_value(json!({"metadata": {"name": "stayput"}})).unwrap();
    namespaces.create(&PostParams::default(), &stayput).await.unwrap();
    let now = k8s_openapi::jiff::Timestamp::now();
    let lease = json!({
        "metadata": {"name": "stayput-reconciler"},
        "spec": {"holderIdentity": "one", "renewTime": format!("{now:.6}")},
    });
    create::<Lease>(&fixture, "stayput", lease).await;
    let one = json!({
        "metadata": {"name": "one", "labels": {"app.kubernetes.io/name": "stayput-reconciler"}},
        "spec": {"containers": [{"name": "reconciler", "image": "reconciler"}]},
    });
    create::<Pod>(&fixture, "stayput", one).await;
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let pods: Api<Pod> = Api::namespaced(fixture.client.clone(), "stayput");
    pods.patch_status("one", &PatchParams::default(), &Patch::Merge(ready)).await.unwrap();
    let address = reconciler("200 OK", snapshot(&fixture).await.to_string()).await;
    (fixture, format!("--reconciler {address}"))
}

/// What its reconciler sees.
async fn snapshot(fixture: &Fixture) -> Value {
    let text = std::fs::read_to_string("proto/samples/snapshot.json").unwrap();
    let mut saved: Value = serde_json::from_str(&text).unwrap();
    let template = saved["snapshot"]["pods"][0].clone();
    let mut pods = Vec::new();
    for number in 0..3 {
        let name = format!("logs-{number}");
        let mut pod = template.clone();
        pod["uid"] = json!(fixture.pods().get(&name).await.unwrap().metadata.uid);
        pod["manager"]["known"]["podUid"] = pod["uid"].clone();
        pod["manager"]["known"]["version"] = json!(env!("CARGO_PKG_VERSION"));
        pod["name"] = json!(name);
        pods.push(pod);
    }
    saved["snapshot"]["pods"] = json!(pods);
    saved["snapshot"]["cluster"]["name"] = json!("default/logs");
    saved["snapshot"]["now"] = json!(NOW);
    saved["stayput"] = json!(env!("CARGO_PKG_VERSION"));
    saved
}

#[tokio::test] // proves DOCTOR-1
async fn a_healthy_cluster_has_no_findings() {
    let (fixture, reconciler) = healthy().await;
    let page = fixture.succeeds(&format!("doctor logs {reconciler}")).await;
    assert_eq!(page, "cluster     default/logs\nresult      nothing is wrong\n");
    let printed = fixture.json(&format!("doctor -A {reconciler}")).await;
    let expected =
        json!({"clusters": [{"cluster": "logs", "namespace": "default", "findings": []}]});
    assert_eq!(printed, expected);
}

/// What is wrong with one of two clusters is said of that one, and ends with its code.
#[tokio::test] // proves DOCTOR-7
async fn all_clusters_are_looked_at_each_for_itself() {
    let (fixture, reconciler) = healthy().await;
    fixture.declare("metrics").await;
    let ended = fixture.run(&format!("doctor -A {reconciler}")).await;
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    let (logs, metrics) = ended.stdout.split_once("cluster     default/metrics\n").unwrap();
    assert_eq!(logs.trim_end(), "cluster     default/logs\nresult      nothing is wrong");
    assert!(metrics.contains("error       not_processed: "), "{metrics}");
    assert!(metrics.contains("error       no_pods: "), "{metrics}");
    let one = fixture.run(&format!("doctor logs {reconciler}")).await;
    assert_eq!(one.code, 0, "{}{}", one.stdout, one.stderr);
    let ended = fixture.run("doctor metrics --reconciler nonsense: --context stand-in").await;
    let command = "this namespace: `kubectl --context stand-in get pods -A -l ";
    assert!(ended.stdout.contains(command), "{}", ended.stdout);
    let printed = fixture.run(&format!("doctor -A -o json {reconciler}")).await;
    let printed: Value = serde_json::from_str(&printed.stdout).unwrap();
    let clusters = printed["clusters"].as_array().unwrap();
    let names: Vec<&Value> = clusters.iter().map(|one| &one["cluster"]).collect();
    assert_eq!(names, ["logs", "metrics"]);
    assert_eq!(clusters[0]["findings"], json!([]));
    assert_ne!(clusters[1]["findings"], json!([]));
}

#[tokio::test] // proves DOCTOR-7
async fn errors_are_shown_with_their_remedies_and_end_with_1() {
    let (fixture, reconciler) = healthy().await;
    let sets: Api<StatefulSet> = Api::namespaced(fixture.client.clone(), "default");
    let rolling = json!({"spec": {"updateStrategy": {"type": "RollingUpdate"}}});
    sets.patch("logs", &PatchParams::default(), &Patch::Merge(rolling)).await.unwrap();
    let seen = Patch::Merge(json!({"status": {"replicas": 3, "observedGeneration": 2}}));
    sets.patch_status("logs", &PatchParams::default(), &seen).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(fixture.client.clone(), "default");
    secrets.delete("ca", &Default::default()).await.unwrap();
    let closed = json!({"metadata": {"name": "closed"}, "spec": {"podSelector": {}}});
    create::<NetworkPolicy>(&fixture, "default", closed).await;
    let ended = fixture.run(&format!("doctor {reconciler}")).await;
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let at = |text: &str| lines.iter().position(|line| line.contains(text));
    let absent =
        at("error       secret_absent: Secret/ca: spec.manager.caSecret names it").unwrap();
    assert_eq!(lines[absent + 1].trim(), "kubectl -n default get secrets");
    let engine =
        at("network: NetworkPolicy/closed: it does not let the reconciler through to port 9200");
    let rolling = at("warning     replaces_pods: StatefulSet/logs: ").unwrap();
    assert!(absent < rolling && engine.unwrap() < rolling, "{}", ended.stdout);
    assert!(lines[rolling + 1].contains("kubectl patch statefulset logs"), "{}", ended.stdout);
    let last = lines.last().unwrap();
    assert_eq!(*last, "result      2 errors, 0 unknown, 2 warnings, 0 notes", "{lines:?}");
}

#[tokio::test] // proves DOCTOR-7
async fn what_could_not_be_read_ends_with_2() {
    let (fixture, reconciler) = healthy().await;
    for (resource, code) in [
        ("secrets", "secret"),
        ("networkpolicies", "network"),
        ("poddisruptionbudgets", "budget"),
        ("subjectaccessreviews", "rights"),
        ("customresourcedefinitions", "definition"),
        ("leases", "leader"),
    ] {
        fixture.server.inject(Fault::new(How::Refuse(403)).resource(resource).times(20));
        let ended = fixture.run(&format!("doctor {reconciler}")).await;
        assert_eq!(ended.code, 2, "{resource}: {}{}", ended.stdout, ended.stderr);
        let expected = format!("unknown     {code}: ");
        assert!(ended.stdout.contains(&expected), "{resource}: {}", ended.stdout);
        let right = format!(" on {resource}");
        let is_named = |line: &str| line.contains("Role") && line.contains(&right);
        assert!(ended.stdout.lines().any(is_named), "{}", ended.stdout);
        fixture.server.clear_faults();
    }
    let ended = fixture.run(&format!("doctor {NOBODY}")).await;
    assert_eq!(ended.code, 2, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("cannot check whether managers and engine answer"));
    let printed = fixture.run(&format!("doctor -o json {NOBODY}")).await;
    let printed: Value = serde_json::from_str(&printed.stdout).unwrap();
    let finding = &printed["clusters"][0]["findings"][0];
    assert_eq!(
        (&finding["severity"], &finding["code"]),
        (&json!("unknown"), &json!("no_snapshot"))
    );
    assert!(finding["remedy"].as_str().unwrap().starts_with("kubectl -n stayput port-forward"));
}

/// An Elasticsearch of ECK, as its operator leaves it: see docs/operators.md.
#[tokio::test] // proves DOCTOR-13
async fn the_operators_object_is_read() {
    let (fixture, reconciler) = healthy().await;
    let definition = json!({
        "metadata": {"name": "elasticsearches.elasticsearch.k8s.elastic.co"},
        "spec": {
            "group": "elasticsearch.k8s.elastic.co", "scope": "Namespaced",
            "names": {"plural": "elasticsearches", "kind": "Elasticsearch"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}],
        },
    });
    let api = Api::<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition>::all(fixture.client.clone());
    let definition = serde_json::from_value(definition).unwrap();
    api.create(&PostParams::default(), &definition).await.unwrap();
    let gvk =
        kube::core::GroupVersionKind::gvk("elasticsearch.k8s.elastic.co", "v1", "Elasticsearch");
    let resource = kube::core::ApiResource::from_gvk_with_plural(&gvk, "elasticsearches");
    let api: Api<kube::core::DynamicObject> =
        Api::namespaced_with(fixture.client.clone(), "default", &resource);
    let object = json!({
        "apiVersion": "elasticsearch.k8s.elastic.co/v1", "kind": "Elasticsearch",
        "metadata": {"name": "logs"}, "spec": {"version": "8.19.0"},
    });
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    let sets: Api<StatefulSet> = Api::namespaced(fixture.client.clone(), "default");
    let owner = json!({"metadata": {"ownerReferences": [{
        "apiVersion": "elasticsearch.k8s.elastic.co/v1", "kind": "Elasticsearch", "name": "logs",
        "uid": "u", "controller": true,
    }]}});
    sets.patch("logs", &PatchParams::default(), &Patch::Merge(owner)).await.unwrap();
    let page = fixture.succeeds(&format!("doctor {reconciler}")).await;
    assert!(
        page.contains("warning     operator: Elasticsearch/logs: ECK restarts nodes"),
        "{page}"
    );
    let paused =
        json!({"metadata": {"annotations": {"eck.k8s.elastic.co/pause-orchestration": "true"}}});
    api.patch("logs", &PatchParams::default(), &Patch::Merge(paused)).await.unwrap();
    let page = fixture.succeeds(&format!("doctor {reconciler}")).await;
    assert!(page.contains("ECK does not say that it is paused"), "{page}");
    // What ECK answers from 3.5 on.
    let answer = json!({"status": {"conditions": [
        {"type": "OrchestrationPaused", "status": "True"},
    ]}});
    api.patch("logs", &PatchParams::default(), &Patch::Merge(answer)).await.unwrap();
    let page = fixture.succeeds(&format!("doctor {reconciler}")).await;
    assert_eq!(page, "cluster     default/logs\nresult      nothing is wrong\n");
}
