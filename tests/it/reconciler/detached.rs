//! `kubectl stayput detach`, with a reconciler that works and without one.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use kube::Api;
use kube::api::ListParams;
use serde_json::json;
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::Outcome;
use stayput_standin::apiserver::{Fault, How};

use super::fixture::{Fixture, NODES, Reconciler};
use super::objects::{NAMESPACE, eventually};
use crate::support::lease::{lead, lead_throughout};
use crate::support::program::{Ended, finish, kubectl_stayput};

/// Runs `kubectl stayput` in the namespace of the fixture.
pub(super) async fn run(fixture: &Fixture, line: &str) -> Ended {
    let (_directory, kubeconfig) = fixture.kubeconfig();
    let line = format!("-n {NAMESPACE} {line}");
    let mut command = kubectl_stayput(&kubeconfig, line.split_whitespace());
    tokio::task::spawn_blocking(move || finish(&mut command)).await.expect("it ends")
}

async fn namespace(fixture: &Fixture) {
    let api: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(fixture.client.clone());
    let stayput = serde_json::from_value(json!({"metadata": {"name": "stayput"}}));
    api.create(&Default::default(), &stayput.expect("an object")).await.expect("it is made");
}

/// The Lease of a leader that works.
pub(super) async fn working(fixture: &Fixture) {
    namespace(fixture).await;
    lead_throughout(fixture.client.clone()).await;
}

/// All objects of the namespace that have one of our names in their metadata.
async fn ours(fixture: &Fixture) -> Vec<String> {
    let mut found = Vec::new();
    macro_rules! look {
        ($($kind:ty),*) => {$(
            let all = fixture.api::<$kind>().list(&ListParams::default()).await.expect("a list");
            for object in all.items {
                let metadata = json!(object.metadata);
                if metadata.to_string().contains("stayput.dev/") || metadata.to_string().contains("restart-phase") {
                    found.push(format!("{} {}", stringify!($kind), metadata["name"]));
                }
            }
        )*};
    }
    look!(Pod, Secret, ConfigMap, Service, StatefulSet, SearchCluster);
    let clusters = fixture.api::<SearchCluster>().list(&ListParams::default()).await;
    found.extend(clusters.expect("a list").items.iter().map(|_| "a SearchCluster".to_owned()));
    found
}

async fn uids(fixture: &Fixture) -> Vec<String> {
    let pods = fixture.api::<Pod>().list(&ListParams::default()).await.expect("a list");
    pods.items.into_iter().filter_map(|pod| pod.metadata.uid).collect()
}

#[tokio::test] // proves DOCTOR-8
async fn after_a_restart_nothing_of_ours_is_left_and_the_nodes_run_on() {
    let fixture = Fixture::new("").await;
    working(&fixture).await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    assert_eq!(fixture.until_over("r1").await.outcome, Outcome::Done);
    let (before, pods) = (ours(&fixture).await, uids(&fixture).await);
    // The pods, the key for the managers' tokens, and the SearchCluster.
    assert!(before.len() >= NODES.len() + 2, "{before:?}");
    let asked = run(&fixture, "detach logs").await;
    assert_eq!(asked.code, 64, "{}", asked.stdout);
    assert!(
        asked.stderr.contains("Detach default/logs? To confirm, add --yes"),
        "{}",
        asked.stderr
    );
    let dry = run(&fixture, "detach logs --dry-run").await;
    assert!(dry.stdout.contains("taken off the pods logs-0, logs-1, logs-2\n"), "{}", dry.stdout);
    assert_eq!(ours(&fixture).await, before, "nothing was changed");
    let ended = run(&fixture, "detach logs --yes").await;
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let waits = "waiting until the reconciler has undone its changes\n";
    assert!(ended.stderr.starts_with(waits), "{}", ended.stderr);
    assert!(
        ended.stdout.starts_with(&format!("{NAMESPACE}/logs is detached: ")),
        "{}",
        ended.stdout
    );
    assert_eq!(ours(&fixture).await, Vec::<String>::new());
    assert_eq!(uids(&fixture).await, pods);
    fixture.engine_until("/_cluster/health?wait_for_nodes=3&wait_for_status=green").await;
    reconciler.end().await;
}

#[tokio::test] // proves DOCTOR-11
async fn a_restart_is_cancelled_only_if_that_is_wanted() {
    let fixture = Fixture::new("").await;
    working(&fixture).await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.respec(json!({"paused": true})).await;
    fixture.ask("r1", "rolling").await;
    let has_begun = |cluster: &SearchCluster| {
        cluster.status.as_ref().is_some_and(|status| status.ledger.restart.is_some())
    };
    fixture.until("r1 is under way", has_begun).await;
    let refused = run(&fixture, "detach").await;
    assert_eq!(refused.code, 1, "{}", refused.stdout);
    assert!(refused.stderr.contains("restart r1 has not ended"), "{}", refused.stderr);
    let ended = run(&fixture, "detach --cancel --yes").await;
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    assert_eq!(ours(&fixture).await, Vec::<String>::new());
    reconciler.end().await;
}

#[tokio::test] // proves DOCTOR-8
async fn a_command_that_was_ended_in_the_middle_is_repeated_and_goes_on() {
    let fixture = Fixture::new("").await;
    working(&fixture).await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    fixture.until_over("r1").await;
    reconciler.end().await;
    // Nobody takes the finalizer off.
    // On a busy machine its time may be over before it has asked for the deletion.
    let cluster = eventually("it was ended while it waits for the reconciler", async || {
        let ended = run(&fixture, "detach --timeout 2s --yes").await;
        assert_eq!(ended.code, 124, "{}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains("the same command goes on"), "{}", ended.stderr);
        let cluster = fixture.api::<SearchCluster>().get("logs").await.expect("it is there");
        cluster.metadata.deletion_timestamp.is_some().then_some(cluster)
    })
    .await;
    let finalizers = cluster.metadata.finalizers.unwrap_or_default();
    assert_eq!(finalizers, ["stayput.dev/debts", "stayput.dev/detach"]);
    let reconciler = Reconciler::start(fixture.client.clone());
    // Also if the reconciler has nothing more to do with it before that.
    let is_free = |cluster: &SearchCluster| {
        cluster.metadata.finalizers.as_ref().is_some_and(|all| all == &["stayput.dev/detach"])
    };
    fixture.until("the debts are paid", is_free).await;
    let ended = run(&fixture, "detach logs --yes").await;
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    assert_eq!(ours(&fixture).await, Vec::<String>::new());
    reconciler.end().await;
}

#[tokio::test] // proves DOCTOR-11
async fn without_a_reconciler_it_changes_nothing_and_says_what_is_owed() {
    let fixture = Fixture::new("standin.stop_delay_ms: 600000").await;
    namespace(&fixture).await;
    lead(fixture.client.clone(), "2026-11-21T03:00:00.000000Z").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    let owes = |cluster: &SearchCluster| {
        let ledger = cluster.status.as_ref().map(|status| &status.ledger);
        ledger.is_some_and(|ledger| ledger.debts.allocation.is_some())
    };
    fixture.until("allocation is owed", owes).await;
    reconciler.kill().await;
    let before = fixture.api::<SearchCluster>().get("logs").await.expect("it is there");
    let refused = run(&fixture, "detach --cancel --yes").await;
    assert_eq!(refused.code, 1, "{}", refused.stdout);
    for part in [
        "the leader one has not renewed its Lease for",
        "/_cluster/settings",
        r#""cluster.routing.allocation.enable":null"#,
        r#"'[{"op":"test","path":"/metadata/finalizers/0","value":"stayput.dev/debts"},{"op":"remove","path":"/metadata/finalizers/0"}]'"#,
    ] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    let after = fixture.api::<SearchCluster>().get("logs").await.expect("it is there");
    assert_eq!(before.metadata.resource_version, after.metadata.resource_version);
}

#[tokio::test] // proves DOCTOR-8
async fn who_may_not_change_a_secret_is_told_how_without_taking_it_from_others() {
    for (verb, before, expected) in [
        ("patch", "logs,metrics", "annotate --overwrite secret engine stayput.dev/allow=metrics\n"),
        ("patch", "logs", "annotate secret engine stayput.dev/allow-\n"),
        (
            "get",
            "logs,metrics",
            "take logs out of its annotation stayput.dev/allow, and leave the others",
        ),
    ] {
        let fixture = Fixture::new("").await;
        namespace(&fixture).await;
        let secret = json!({"metadata": {
            "name": "engine", "annotations": {"stayput.dev/allow": before},
        }});
        let secret: Secret = serde_json::from_value(secret).expect("a Secret");
        fixture.api::<Secret>().create(&Default::default(), &secret).await.expect("it is made");
        let engine = json!({"credentialsSecret": "engine"});
        fixture.respec(json!({"engine": engine})).await;
        let fault = Fault::new(How::Refuse(403)).verb(verb).resource("secrets").times(u32::MAX);
        fixture.server.inject(fault);
        // No reconciler has worked here, and so nothing is owed.
        let ended = run(&fixture, "detach logs --yes").await;
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.contains(expected), "{verb}: {}", ended.stdout);
    }
}
