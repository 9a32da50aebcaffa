//! Another pod is wanted, and the apiserver lets the reconciler delete none (`deploy/replace` is not
//! installed); or another image, and admission refuses it.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::Outcome;
use stayput_standin::apiserver::{Fault, How};

use super::super::containers::Containers;
use super::super::fixture::{Fixture, NODES, Reconciler};
use super::super::objects::eventually;
use super::{Set, pods, template};

/// What the status says of all three nodes, if it is the same.
fn said(cluster: &SearchCluster) -> Option<String> {
    let nodes = &cluster.status.as_ref()?.report.nodes;
    let mut messages = nodes.iter().filter_map(|node| node.message.clone());
    let first = messages.next()?;
    (messages.filter(|one| one.contains("cannot be deleted")).count() == 2).then_some(first)
}

#[tokio::test] // proves UPDATE-8, UPDATE-90
async fn no_node_is_stopped_for_a_pod_that_cannot_be_deleted() {
    let fixture = Fixture::new("").await;
    let containers = Containers::run(&fixture).await;
    let mut set = Set::new(&fixture, "OnDelete").await;
    let allow = json!(["relabel", "restart", "container", "resize", "replace"]);
    fixture.respec(json!({"update": {"mode": "inPlace", "allow": allow}})).await;
    let forbidden = Fault::new(How::Refuse(403)).verb("delete").resource("pods");
    fixture.server.inject(forbidden.times(u32::MAX));
    let reconciler = Reconciler::start(fixture.server.client());
    fixture.until_seen().await;
    let (processes, first) = (fixture.processes(), pods(&fixture).await);

    let mut other = template("search", "hot");
    other["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    set.edit(other).await;
    let cluster = fixture.until("it is told", |cluster| said(cluster).is_some()).await;
    let message = said(&cluster).expect("it is told");
    for part in ["cannot be deleted: ", "the roles of deploy/replace", "spec.nodeSelector"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(fixture.processes(), processes, "no engine was stopped");

    // A policy keeps the pod: its words are shown, and no roles that would not help.
    fixture.server.clear_faults();
    let kept = "ValidatingAdmissionPolicy 'stayput-keep-pods' with binding 'stayput-keep-pods' denied \
                request: kubectl --namespace default label pod logs-0 stayput.dev/keep-pod-";
    let denied = Fault::new(How::Deny(403, kept)).verb("delete").resource("pods");
    fixture.server.inject(denied.times(u32::MAX));
    let is_kept = |cluster: &SearchCluster| said(cluster).is_some_and(|it| it.contains(kept));
    let cluster = fixture.until("the policy is told", is_kept).await;
    let message = said(&cluster).expect("it is told");
    assert!(!message.contains("the roles of"), "{message}");
    assert_eq!(fixture.processes(), processes, "no engine was stopped");

    // What a person asks for is done without it.
    let entry = fixture.restart("r1", "rolling").await;
    assert_eq!((entry.outcome, json!(entry.steps)), (Outcome::Done, json!({"restart": 3})));
    assert_eq!(pods(&fixture).await, first, "pods and containers stay");

    // With the role the first pod is deleted, after its stop.
    fixture.server.clear_faults();
    eventually("a pod is deleted", async || {
        for name in NODES {
            let pod = fixture.api::<Pod>().get_opt(name).await.expect("an answer");
            if pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()) {
                return Some(());
            }
        }
        None
    })
    .await;
    reconciler.end().await;
    containers.end();
}

#[tokio::test] // proves UPDATE-6
async fn no_node_is_stopped_for_an_image_that_admission_refuses() {
    let fixture = Fixture::new("").await;
    let containers = Containers::run(&fixture).await;
    let mut set = Set::new(&fixture, "OnDelete").await;
    fixture.respec(json!({"update": {"mode": "inPlace"}})).await;
    let denied = "admission webhook \"images.example\" denied the request: not signed";
    fixture
        .server
        .inject(Fault::new(How::Deny(403, denied)).verb("patch").resource("pods").times(u32::MAX));
    let reconciler = Reconciler::start(fixture.server.client());
    fixture.until_seen().await;
    let (processes, first) = (fixture.processes(), pods(&fixture).await);

    set.edit(template("search:2", "hot")).await;
    let told = |cluster: &SearchCluster| {
        let status = cluster.status.as_ref()?;
        let mut messages = status.report.nodes.iter().filter_map(|node| node.message.clone());
        messages.find(|message| message.contains(denied))
    };
    let cluster = fixture.until("it is told", |cluster| told(cluster).is_some()).await;
    let message = told(&cluster).expect("it is told");
    assert!(
        message.contains("refuses to change the pod") && !message.contains("roles"),
        "{message}"
    );
    assert_eq!(fixture.processes(), processes, "no engine was stopped");
    assert_eq!(pods(&fixture).await, first, "pods and containers stay");

    fixture.server.clear_faults();
    let over = fixture
        .until("it is carried out", |cluster| {
            cluster.status.as_ref().is_some_and(|status| status.ledger.history.len() == 1)
        })
        .await;
    let entry = &over.status.expect("a status").ledger.history[0];
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    reconciler.end().await;
    containers.end();
}

#[tokio::test] // proves RESTART-66
async fn an_image_that_admission_changes_is_carried_out_as_it_is_stored() {
    let fixture = Fixture::new("").await;
    let containers = Containers::run(&fixture).await;
    let mut set = Set::new(&fixture, "OnDelete").await;
    fixture.respec(json!({"update": {"mode": "inPlace"}})).await;
    let mirror = How::Rewrite("\"search:2\"", "\"mirror/search:2\"");
    let patches = Fault::new(mirror).verb("patch").resource("pods");
    fixture.server.inject(patches.times(u32::MAX));
    let reconciler = Reconciler::start(fixture.server.client());
    fixture.until_seen().await;
    set.edit(template("search:2", "hot")).await;
    let over = fixture
        .until("it is carried out", |cluster| {
            cluster.status.as_ref().is_some_and(|status| status.ledger.history.len() == 1)
        })
        .await;
    let entry = &over.status.expect("a status").ledger.history[0];
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    for name in NODES {
        let pod = fixture.api::<Pod>().get(name).await.expect("it is there");
        let images = pod.spec.expect("a spec").containers.into_iter().map(|one| one.image);
        let is_mirrored = |image: &Option<String>| image.as_deref() == Some("mirror/search:2");
        assert!(
            images.clone().any(|image| is_mirrored(&image)),
            "{:?}",
            images.collect::<Vec<_>>()
        );
    }
    reconciler.end().await;
    containers.end();
}
