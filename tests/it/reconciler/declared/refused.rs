//! A declaration that cannot be carried out: the status says which field and what to do, and nothing
//! is made or changed.

use std::collections::BTreeMap;

use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use stayput_kube_access::cluster::SearchCluster;

use super::super::fixture::Reconciler;
use super::super::objects::{NAMESPACE, eventually};
use super::{all, api, blocked, create, declared, empty};

/// What a declared cluster may be made of.
const KINDS: [(&str, &str); 6] = [
    ("", "Secret"),
    ("", "ConfigMap"),
    ("", "Service"),
    ("", "PersistentVolumeClaim"),
    ("", "Pod"),
    ("apps", "StatefulSet"),
];

/// Every object of these kinds, with its version.
async fn everything(client: &Client) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (group, kind) in KINDS {
        let list = api(client, group, kind).list(&ListParams::default()).await.expect("an answer");
        found.extend(list.items.into_iter().map(|object| {
            let name = object.metadata.name.expect("a name");
            (format!("{kind} {name}"), object.metadata.resource_version.expect("a version"))
        }));
    }
    found
}

/// A node set with data whose claims are made from templates with these names.
fn with_claims(name: &str, claims: &[&str]) -> Value {
    let claim = |name: &&str| {
        json!({
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        })
    };
    json!({
        "name": name,
        "count": 1,
        "config": {"node.roles": ["data"]},
        "volumeClaimTemplates": claims.iter().map(claim).collect::<Vec<_>>(),
    })
}

/// Masters, nodes with data on claims, and these.
fn node_sets(more: &[Value]) -> Value {
    let masters = declared()["spec"]["nodeSets"][1].take();
    let sets = [masters, with_claims("data", &["data"])];
    Value::Array(sets.iter().chain(more).cloned().collect())
}

/// Declares a cluster of these node sets.
async fn declare(client: &Client, node_sets: Value) {
    let mut cluster = declared();
    cluster["spec"]["nodeSets"] = node_sets;
    create(client, cluster).await;
}

/// Waits until the declaration is carried out as far as it can be without pods.
async fn carried_out(client: &Client) {
    let clusters: Api<SearchCluster> = Api::namespaced(client.clone(), NAMESPACE);
    eventually("it is carried out", async || {
        let report = clusters.get("logs").await.ok()?.status?.report;
        let message = report.message?;
        message.contains("has not formed yet").then_some(())
    })
    .await;
}

async fn respec(client: &Client, spec: &Value) {
    let clusters: Api<SearchCluster> = Api::namespaced(client.clone(), NAMESPACE);
    let patch = Patch::Merge(json!({"spec": spec}));
    clusters.patch("logs", &PatchParams::default(), &patch).await.expect("it is taken");
}

/// Waits until the status has this code, and a message with these words.
async fn refused(client: &Client, code: &str, words: [&str; 2]) {
    eventually(words[0], async || {
        let message = blocked(client, code).await;
        words.iter().all(|part| message.contains(part)).then_some(())
    })
    .await;
}

#[tokio::test] // proves DECLARE-16
async fn a_change_that_is_refused_names_field_and_remedy_and_changes_nothing() {
    let (server, client) = empty().await;
    declare(&client, node_sets(&[])).await;
    let reconciler = Reconciler::start(server.client());
    all(&client).await;
    carried_out(&client).await;
    let before = everything(&client).await;

    let engine = |distribution: &str, version: &str| json!({"engine": {"distribution": distribution, "version": version}});
    let good = json!({
        "engine": {"distribution": "opensearch", "version": "2.19.3"},
        "nodeSets": node_sets(&[]),
    });
    let mut larger = node_sets(&[]);
    let amounts = &mut larger[1]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"];
    amounts["storage"] = json!("2Gi");
    // data + logs-a-logs-b, and data-logs-a + logs-b.
    let colliding =
        [with_claims("a-logs-b", &["data"]), with_claims("b", &["data", "data-logs-a"])];
    // What is wrong whatever is there is found when the spec is checked.
    let table = [
        (
            engine("opensearch", "2.19.2"),
            "declaration_refused",
            ["spec.engine.version: downgrade: is 2.19.2", "write 2.19.3 or a higher version"],
        ),
        (
            json!({"nodeSets": larger}),
            "declaration_refused",
            ["spec.nodeSets[data].volumeClaimTemplates", "declare a node set with another name"],
        ),
        (
            json!({"nodeSets": node_sets(&colliding)}),
            "invalid_spec",
            ["spec.nodeSets[b].volumeClaimTemplates", "rename one of them"],
        ),
        (
            engine("elasticsearch", "8.19.0"),
            "declaration_refused",
            ["spec.engine.distribution: the nodes run opensearch", "write opensearch"],
        ),
    ];
    for (change, code, words) in table {
        respec(&client, &change).await;
        refused(&client, code, words).await;
        assert_eq!(everything(&client).await, before, "{change}");
        respec(&client, &good).await;
        carried_out(&client).await;
        assert_eq!(everything(&client).await, before, "{change} was taken back");
    }
    reconciler.end().await;
}

#[tokio::test] // proves DECLARE-16
async fn of_a_declaration_whose_claims_collide_nothing_is_made() {
    let (server, client) = empty().await;
    let colliding =
        [with_claims("a-logs-b", &["data"]), with_claims("b", &["data", "data-logs-a"])];
    declare(&client, node_sets(&colliding)).await;
    let reconciler = Reconciler::start(server.client());
    let words = ["spec.nodeSets[b].volumeClaimTemplates", "rename one of them"];
    refused(&client, "invalid_spec", words).await;
    assert_eq!(everything(&client).await, BTreeMap::new());
    reconciler.end().await;
}

/// What a chart has made, or somebody by hand.
async fn make_claim(client: &Client, name: &str) {
    let claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "labels": {"app": "chart"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    let claim = serde_json::from_value(claim).expect("a claim");
    let claims = api(client, "", "PersistentVolumeClaim");
    claims.create(&PostParams::default(), &claim).await.expect("it is created");
}

/// Kubernetes gives these labels to each claim of the set; so has one that an earlier cluster has left.
async fn give_to_its_set(client: &Client, claim: &str) {
    let labels = json!({"stayput.dev/cluster": "logs", "stayput.dev/node-set": "data"});
    let labels = Patch::Merge(json!({"metadata": {"labels": labels}}));
    let claims = api(client, "", "PersistentVolumeClaim");
    claims.patch(claim, &PatchParams::default(), &labels).await.expect("taken");
}

/// Nodes without data would form an empty cluster, which those with data cannot join.
#[tokio::test] // proves DECLARE-19
async fn a_cluster_comes_back_from_the_claims_of_an_earlier_one_and_is_not_formed_anew() {
    let (server, client) = empty().await;
    make_claim(&client, "data-logs-data-0").await;
    give_to_its_set(&client, "data-logs-data-0").await;
    declare(&client, node_sets(&[])).await;
    let reconciler = Reconciler::start(server.client());
    let made = all(&client).await;
    let bootstrap = json!({"INITIAL_MASTER_NODES": "", "claims": "data-logs-data-0"});
    assert_eq!(made[2].data["data"], bootstrap);
    assert_eq!(made[4].data["spec"]["replicas"], 3, "all masters start at once");
    carried_out(&client).await;
    let clusters: Api<SearchCluster> = Api::namespaced(client.clone(), NAMESPACE);
    let status = clusters.get("logs").await.expect("it is there").status.expect("a status");
    let message = status.report.message.expect("a message");
    assert!(
        message.contains("volume claims were there before (data-logs-data-0, 1 in all)"),
        "{message}"
    );
    reconciler.end().await;
}

#[tokio::test] // proves DECLARE-15
async fn a_claim_of_somebody_else_is_named_and_nothing_is_made_until_it_is_given_to_the_set() {
    let (server, client) = empty().await;
    make_claim(&client, "data-logs-data-0").await;
    let before = everything(&client).await;
    declare(&client, node_sets(&[])).await;
    let reconciler = Reconciler::start(server.client());
    let words = [
        "PersistentVolumeClaim data-logs-data-0 exists and is not of node set data",
        "choose another name for the node set",
    ];
    refused(&client, "foreign_object", words).await;
    assert_eq!(everything(&client).await, before);

    give_to_its_set(&client, "data-logs-data-0").await;
    all(&client).await;

    // Another node of a set that is there, and another set.
    carried_out(&client).await;
    make_claim(&client, "data-logs-data-1").await;
    make_claim(&client, "data-logs-more-0").await;
    let before = everything(&client).await;
    let mut grown = node_sets(&[]);
    grown[1]["count"] = json!(2);
    for (change, claim) in [
        (grown, "data-logs-data-1"),
        (node_sets(&[with_claims("more", &["data"])]), "data-logs-more-0"),
    ] {
        respec(&client, &json!({"nodeSets": change})).await;
        let exists = format!("PersistentVolumeClaim {claim} exists");
        refused(&client, "foreign_object", [&exists, "or delete it"]).await;
        assert_eq!(everything(&client).await, before, "{claim}");
    }
    reconciler.end().await;
}
