//! Restarts that succeed.

use std::time::Instant;

use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use stayput_controller::{Account, Settings};
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{Outcome, Strategy, annotation};

use super::detached::{run, working};
use super::fixture::{Fixture, NODES, Reconciler};
use super::leftovers::put;
use super::objects::{NAMESPACE, eventually, search_cluster};
use stayput_standin::apiserver::{ApiServer, Asked};

/// Waits until no pod shows a phase; checks that each shows how the restart `id` ended.
pub(super) async fn until_clean(fixture: &Fixture, id: &str) {
    eventually("nothing is left on the pods", async || {
        for name in NODES {
            let annotations = fixture.pod(name).await.metadata.annotations.unwrap_or_default();
            let left = [annotation::PHASE, annotation::SHOWN];
            if left.iter().any(|key| annotations.contains_key(*key)) {
                return None;
            }
            assert!(annotations[annotation::LAST_RESTART].contains(id), "{annotations:?}");
        }
        Some(())
    })
    .await;
}

#[tokio::test] // proves RESTART-23, RESTART-139, FIGURE-7
async fn a_rolling_restart_brings_a_new_config_to_every_node_and_keeps_the_pods() {
    // Its replica comes back a moment after its node, as on a real engine.
    let fixture = Fixture::new("standin.recovery_ms: 300").await;
    put(&fixture, "/indexed", json!({"settings": {"number_of_replicas": 2}})).await;
    fixture.engine_until("/_cluster/health?wait_for_status=green").await;
    let before = fixture.processes();
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    for name in NODES {
        fixture.configure(name, "node.attr.round: two\nstandin.recovery_ms: 300").await;
    }
    working(&fixture).await;
    let counts = fixture.server.counts();
    let began = Instant::now();
    let asked = run(&fixture, "restart logs --id r1").await;
    assert_eq!(asked.code, 0, "{asked:?}");
    let entry = fixture.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    let after = fixture.processes();
    for name in NODES {
        assert_eq!(before[name].0, after[name].0, "the manager of {name} stays");
        assert_ne!(before[name].1, after[name].1, "the engine of {name} is another");
        assert_eq!(fixture.starts(name).await, 2);
    }
    let nodes = fixture.engine_until("/_nodes").await;
    for node in nodes["nodes"].as_object().expect("nodes").values() {
        assert_eq!(node["attributes"]["round"], "two", "{node}");
    }
    let settings = fixture.engine_until("/_cluster/settings?flat_settings=true").await;
    assert_eq!(settings["persistent"], json!({}));
    until_clean(&fixture, "r1").await;
    let counts = fixture.server.counts().since(&counts);
    assert_eq!(counts.conflicts(), 0, "{counts:?}");
    // Only the first write after a start of the reconciler replaces the status.
    let whole = |asked: &Asked| asked.verb == "update" && asked.resource == "searchclusters/status";
    assert_eq!(counts.matching(whole), 0, "{counts:?}");
    let of = |verb: &str, resource: &str| {
        counts.matching(|asked| asked.verb == verb && asked.resource == resource)
    };
    // The restart with the first slot; the end of each node, with the next slot or with the end of the
    // restart. On a slow machine there are also writes that only update the status, at most one in five
    // seconds.
    let shown = began.elapsed().as_secs() / 5;
    assert!(of("patch", "searchclusters/status") <= 4 + shown, "{counts:?}");
    // Two wait. Each node is nudged or stopped, started, and done.
    assert!(of("patch", "pods") <= 2 + 3 * 3, "{counts:?}");
    // The restart begins, each node begins, the restart ends.
    assert!(of("create", "events") <= 5, "{counts:?}");
    assert_eq!(of("patch", "searchclusters"), 1, "the request with the finalizer: {counts:?}");
    reconciler.end().await;
}

#[tokio::test] // proves RESTART-139
async fn a_coordinated_restart_changes_what_nodes_of_one_cluster_must_agree_on() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.respec(json!({"restart": {"allowOutage": true}})).await;
    for name in NODES {
        fixture.configure(name, "transport.encrypted: true").await;
    }
    let counts = fixture.server.counts();
    let entry = fixture.restart("c1", "coordinated").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    // A program other than ours has written the request.
    let patches = |asked: &Asked| asked.verb == "patch" && asked.resource == "searchclusters";
    let counts = fixture.server.counts().since(&counts);
    assert_eq!(counts.matching(patches), 2, "the request and the finalizer: {counts:?}");
    fixture.engine_until("/_cluster/health?wait_for_nodes=3&wait_for_status=green").await;
    for name in NODES {
        assert_eq!(fixture.starts(name).await, 2);
    }
    until_clean(&fixture, "c1").await;
    reconciler.end().await;
}

#[tokio::test]
async fn where_the_engine_keeps_shutdown_records_they_are_used_and_taken_away() {
    let fixture = Fixture::new("standin.distribution: elasticsearch").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    let (counts, began) = (fixture.server.counts(), Instant::now());
    let entry = fixture.restart("r1", "rolling").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    until_clean(&fixture, "r1").await;
    let counts = fixture.server.counts().since(&counts);
    let patches = |asked: &Asked| asked.verb == "patch" && asked.resource == "pods";
    // Two wait. Each node is started, and done; none is nudged, since nothing is mounted again. A stop is
    // shown if it lasts five seconds.
    let stops = began.elapsed().as_secs() / 5;
    assert!(counts.matching(patches) <= 2 + 3 * 2 + stops, "{counts:?}");
    let records = fixture.engine_until("/_nodes/shutdown").await;
    assert_eq!(records["nodes"], json!([]));
    reconciler.end().await;
}

#[tokio::test]
async fn words_on_pods_and_on_the_cluster_are_requests() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    let word = json!({"metadata": {"annotations": {annotation::PHASE: "schedule"}}});
    let api = fixture.api::<Pod>();
    api.patch("logs-1", &PatchParams::default(), &Patch::Merge(word)).await.expect("it is taken");
    let over = |many: usize| {
        move |cluster: &SearchCluster| {
            cluster.status.as_ref().is_some_and(|status| status.ledger.history.len() == many)
        }
    };
    let cluster = fixture.until("logs-1 is restarted", over(1)).await;
    let entry = &cluster.status.expect("a status").ledger.history[0];
    assert_eq!((entry.strategy, entry.nodes), (Strategy::Immediate, 1), "{entry:?}");
    fixture.annotate(annotation::PHASE, Some("schedule-rolling")).await;
    let cluster = fixture.until("all are restarted", over(2)).await;
    let entry = &cluster.status.expect("a status").ledger.history[1];
    assert_eq!((entry.strategy, entry.nodes), (Strategy::Rolling, 3), "{entry:?}");
    let annotations = cluster.metadata.annotations.expect("annotations");
    assert!(!annotations.contains_key(annotation::PHASE), "{annotations:?}");
    assert_eq!([fixture.starts("logs-0").await, fixture.starts("logs-1").await], [2, 3]);
    reconciler.end().await;
}

#[tokio::test] // proves RESTART-7
async fn managers_are_shown_tokens_of_the_service_account_one_per_pod() {
    let server = ApiServer::start().await.expect("a stand-in apiserver");
    let directory = tempfile::tempdir().expect("a directory");
    let keys = directory.path().join("jwks.json");
    std::fs::write(&keys, server.key_set().to_string()).expect("a file");
    let options = [
        ("--jwks", keys.display().to_string()),
        ("--jwt-issuer", server.issuer().to_owned()),
        ("--allow-subject", "system:serviceaccount:default:stayput-reconciler=control".into()),
    ];
    let options: Vec<String> =
        options.into_iter().flat_map(|(option, value)| [option.to_owned(), value]).collect();
    let fixture = Fixture::with_options(server, "", &options).await;
    let account = json!({"metadata": {"name": "stayput-reconciler", "namespace": NAMESPACE}});
    fixture.create::<ServiceAccount>(account).await;
    let mut cluster = search_cluster(true);
    cluster["spec"]["manager"]["auth"] = json!({"serviceAccountToken": {}});
    fixture.create::<SearchCluster>(cluster).await;
    let account = Account { namespace: NAMESPACE.into(), name: "stayput-reconciler".into() };
    let settings = Settings { name: "test".into(), account: Some(account), ..Settings::default() };
    let reconciler = Reconciler::start_with(fixture.client.clone(), settings);
    fixture.until_seen().await;
    let entry = fixture.restart("r1", "rolling").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    let tokens = |asked: &Asked| asked.resource == "serviceaccounts/token";
    assert_eq!(fixture.server.counts().matching(tokens), 3, "each is used until it is old");
    reconciler.end().await;
}
