//! `status -A` and `history -A`: all clusters of all namespaces.

use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use stayput_kube_access::cluster::SearchCluster;

use super::fixture::{Fixture, under_way};
use stayput_standin::apiserver::{Fault, How};

/// Another SearchCluster, in another namespace.
async fn declare_elsewhere(fixture: &Fixture, namespace: &str, status: Option<Value>) {
    fixture.namespace(namespace).await;
    let mut cluster = fixture.clusters().get("logs").await.unwrap();
    cluster.metadata =
        serde_json::from_value(json!({"name": "traces", "namespace": namespace})).unwrap();
    cluster.status = None;
    let there: Api<SearchCluster> = Api::namespaced(fixture.client.clone(), namespace);
    let mut cluster = there.create(&PostParams::default(), &cluster).await.unwrap();
    if let Some(status) = status {
        cluster.status = Some(serde_json::from_value(status).unwrap());
        there.replace_status("traces", &PostParams::default(), &cluster).await.unwrap();
    }
}

fn ended(id: &str, started: &str, skipped: &[&str]) -> Value {
    json!({"phase": "Idle", "counts": {"pods": 5, "ready": 4}, "history": [{
        "id": id, "strategy": "rolling", "outcome": "done", "reason": "", "started": started,
        "seconds": 100, "nodes": 5, "skippedRules": skipped,
    }]})
}

#[tokio::test] // proves UPDATE-42
async fn every_cluster_has_its_line() {
    let fixture = Fixture::with(under_way("b", "rolling")).await;
    declare_elsewhere(&fixture, "apm", None).await;
    declare_elsewhere(&fixture, "search", Some(ended("c", "2026-11-21T03:08:00Z", &[]))).await;
    let table = fixture.succeeds("status -A").await;
    let lines: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split("   ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    assert_eq!(lines[0], ["CLUSTER", "PHASE", "READY", "RESTART", "WHY"]);
    assert_eq!(lines[1][..4], ["apm/traces", "unknown", "-", "-"]);
    let why = "health: the cluster is red: a primary of index a";
    assert_eq!(lines[2], ["default/logs", "Blocked", "0/0", "b, rolling 0/3", why]);
    assert_eq!(lines[3], ["search/traces", "Idle", "4/5", "-", "-"]);
    assert_eq!(lines.len(), 4, "{table}");
    let all = fixture.json("status --all-namespaces").await;
    let names: Vec<&Value> =
        all["clusters"].as_array().unwrap().iter().map(|one| &one["cluster"]).collect();
    assert_eq!(names, ["traces", "logs", "traces"]);
    assert_eq!(all["clusters"][1]["restart"]["request"]["id"], "b");
}

#[tokio::test] // proves UPDATE-42
async fn the_restarts_of_all_are_in_the_order_of_their_time() {
    let fixture = Fixture::with(ended("a", "2026-11-21T03:00:00Z", &[])).await;
    assert!(fixture.succeeds("history -A").await.contains("default/logs"));
    let skipped = ended("b", "2026-11-22T03:00:00Z", &["one_master_at_a_time"]);
    declare_elsewhere(&fixture, "search", Some(skipped)).await;
    let table = fixture.succeeds("history -A").await;
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("STARTED") && lines[0].contains("CLUSTER"), "{table}");
    assert!(
        lines[1].contains("search/traces") && lines[1].ends_with("without one_master_at_a_time")
    );
    assert!(lines[2].contains("default/logs"), "{table}");
    let all = fixture.json("history -A").await;
    assert_eq!(all["clusters"][1]["history"][0]["id"], "b");
}

#[tokio::test]
async fn what_cannot_be_read_is_an_error() {
    let fixture = Fixture::empty().await;
    let error = fixture.fails("status -A", 1).await;
    assert!(error.contains("no namespace has a SearchCluster"), "{error}");
    fixture.fails("status logs -A", 64).await;
    fixture.server.inject(Fault::new(How::Refuse(403)));
    let error = fixture.fails("status -A", 1).await;
    assert!(
        error.contains(
            "list searchclusters.stayput.dev in the whole cluster: ask for a ClusterRole"
        ),
        "{error}"
    );
    assert!(fixture.server.is_faultless());
}
