//! Clusters whose pods the reconciler makes (`spec.nodeSets`): their pods have its label, and the spec
//! names neither selector nor sources.

use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use stayput_restart::annotation;

use super::fixture::{Fixture, under_way};

const NO_MASTER: &str = "spec.nodeSets: no node can be elected master";

fn node_sets(roles: &[&str]) -> Value {
    json!({"nodeSets": [{
        "name": "all", "count": 3, "config": {"node.roles": roles},
        "podTemplate": {"spec": {"volumes": [{"name": "data", "emptyDir": {}}]}},
    }]})
}

/// A declared cluster of three nodes that has no pods yet.
async fn without_pods() -> Fixture {
    let fixture = Fixture::empty().await;
    let mut cluster = json!({
        "apiVersion": "stayput.dev/v1alpha1", "kind": "SearchCluster",
        "metadata": {"name": "logs", "namespace": "default"},
        "spec": node_sets(&["cluster_manager", "data"]),
    });
    let engine = json!({"scheme": "http", "distribution": "opensearch", "version": "2.19.3"});
    cluster["spec"]["engine"] = engine;
    let cluster = serde_json::from_value(cluster).unwrap();
    fixture.clusters().create(&PostParams::default(), &cluster).await.unwrap();
    fixture
}

/// The same, all nodes of it in a restart that is under way.
async fn declared() -> Fixture {
    let fixture = without_pods().await;
    for number in 0..3 {
        fixture.pod("logs", number).await;
        let labels = json!({"metadata": {"labels": {"stayput.dev/cluster": "logs"}}});
        let (name, patch) = (format!("logs-{number}"), Patch::Merge(labels));
        fixture.pods().patch(&name, &PatchParams::default(), &patch).await.unwrap();
    }
    fixture.status(under_way("b", "rolling")).await;
    fixture
}

/// Its pods mount `logs-manager-tls` and `cluster-jwks`, and do not start before these are there.
#[tokio::test] // proves RESTART-5
async fn init_makes_what_its_pods_mount() {
    let fixture = without_pods().await;
    let objects = async || fixture.json("init logs").await["objects"].take();
    let made = objects().await;
    let found: Vec<_> = made
        .as_array()
        .unwrap()
        .iter()
        .map(|object| {
            let text = |field: &str| object[field].as_str().unwrap().to_owned();
            (text("kind"), text("name"), text("result"))
        })
        .collect();
    let expected = [
        ("Secret", "logs-manager-ca-key", "made"),
        ("Secret", "logs-manager-ca", "made"),
        ("Secret", "logs-manager-tls", "made"),
        ("ConfigMap", "cluster-jwks", "made"),
        ("Role", "stayput-logs-certificates", "made"),
        ("RoleBinding", "stayput-logs-certificates", "made"),
        ("RoleBinding", "stayput-clusters", "made"),
        ("RoleBinding", "stayput-declared", "made"),
        ("SearchCluster", "logs", "unchanged"),
    ];
    let expected = expected.map(|(kind, name, result)| (kind.into(), name.into(), result.into()));
    assert_eq!(found, expected);
    let again = objects().await;
    let mut again = again.as_array().unwrap().iter();
    assert!(again.all(|object| object["result"] == "unchanged"), "{again:?}");
}

#[tokio::test] // proves DECLARE-29
async fn every_command_finds_its_nodes() {
    let fixture = declared().await;
    for (line, part) in [
        ("status", "config      Secret logs-config (spec.nodeSets)\n"),
        ("plan", "waiting     logs-1: nothing to do\n"),
        ("why logs-0", "config      made from Secret logs-config\n"),
        ("diff", "logs-2: no StatefulSet owns it\n"),
        ("pause", "restart b stays and goes on after that"),
        ("resume", "restart b goes on\n"),
        ("restart --id n", "it begins when restart b has ended\n"),
        ("cancel --id n", "request n withdrawn before it was accepted\n"),
        ("restart --dry-run --node logs-1", "order       logs-1\n"),
        ("stop logs-1", "until then 2 of 3 nodes of logs serve"),
        ("start logs-1", "logs-1: will be started"),
        ("cancel", "cancellation of restart b requested"),
    ] {
        let page = fixture.succeeds(line).await;
        assert!(page.contains(part), "{line}: {page}");
    }
    assert_eq!(fixture.annotation(annotation::CANCEL).await.as_deref(), Some("b"));
}

/// What was begun is finished while a declaration is wrong: its nodes are still there.
#[tokio::test] // proves DECLARE-29
async fn and_with_a_declaration_that_is_wrong() {
    let fixture = declared().await;
    fixture.change(json!({"spec": node_sets(&["data"])})).await;
    for (line, part) in [
        ("plan", "waiting     logs-1: nothing to do\n"),
        ("why logs-0", "why         health: the cluster is red"),
        ("diff", "logs-2: no StatefulSet owns it\n"),
        ("pause", "logs is paused"),
        ("resume", "restart b goes on\n"),
        ("stop logs-1", "until then 2 of 3 nodes of logs serve"),
        ("start logs-1", "logs-1: will be started"),
        ("restart --id n", &format!("no node is stopped while the spec is invalid: {NO_MASTER}")),
        ("cancel --id n", "request n withdrawn before it was accepted\n"),
        ("cancel", "cancellation of restart b requested"),
    ] {
        let page = fixture.succeeds(line).await;
        assert!(page.contains(part), "{line}: {page}");
    }
    // It follows the restart under way.
    let error = fixture.fails("watch --timeout 1s", 124).await;
    assert!(error.contains("1s"), "{error}");
}
