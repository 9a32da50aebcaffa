//! A node that is down, after a restart and at rest, as a user sees it with `kubectl stayput` and in
//! the metrics.

use std::path::Path;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use stayput_restart::{Condition, Outcome};

use super::fixture::{Fixture, NODES};
use super::objects::{NAMESPACE, eventually};
use super::program::Program;
use crate::support::program::{finish, kubectl_stayput};
use crate::support::programs::send;
use crate::support::standin_cluster::ask_at;

#[tokio::test] // proves RESTART-101, RESTART-103, RESTART-111
async fn a_node_that_is_down_after_an_abort_is_in_table_condition_and_metric() {
    let fixture = Fixture::new("").await;
    let (_directory, kubeconfig) = fixture.kubeconfig();
    let reconciler = Program::start(&kubeconfig, "first");
    fixture.respec(json!({"restart": {"rollback": false}})).await;
    fixture.until_seen().await;
    for name in NODES {
        fixture.configure(name, "standin.exit_code: 78").await;
    }
    let entry = fixture.restart("r1", "rolling").await;
    assert_eq!(entry.outcome, Outcome::Aborted, "{entry:?}");
    assert!(!entry.reason.contains("last good"), "none is to be started: {entry:?}");

    let cluster = fixture
        .until("the node is shown as down", |cluster| {
            cluster.status.as_ref().is_some_and(|status| status.report.counts.down == 1)
        })
        .await;
    let status = cluster.status.expect("a status");
    let (generation, report) = (cluster.metadata.generation, status.report);
    assert!(generation > Some(1), "the spec was changed");
    assert!(report.conditions.iter().all(|one| one.observed_generation == generation));
    let stalled = report.conditions.iter().find(|one| one.kind == "Stalled").expect("a condition");
    assert_eq!((stalled.status.as_str(), stalled.reason.as_str()), ("True", "NodesDown"));
    let node = report.nodes.iter().find(|node| node.down.is_some()).expect("a node that is down");
    assert_eq!((node.down.as_deref(), node.state.as_deref()), (Some("failed"), Some("failed")));
    let message = node.message.clone().expect("a message");
    let name = node.name.clone();
    for part in [
        "the engine ended with code 78".to_owned(),
        format!("`kubectl -n default logs {name} -c search --since-time=20"),
        format!("`kubectl stayput -n default restart logs --node {name}`"),
    ] {
        assert!(message.contains(&part), "{part} is not in {message}");
    }

    let ask = async |line: &str| kubectl(&kubeconfig, line).await;
    // The start on the way back may fail only now, after another time: then the message is another one.
    let shown = async |line: &str| {
        let status = fixture.cluster().await.status?;
        let node = status.report.nodes.into_iter().find(|node| node.down.is_some())?;
        let page = ask(line).await;
        page.contains(&format!("DOWN: {}", node.message?)).then_some(page)
    };
    let page = eventually("the page has it", async || shown("status logs --no-color").await).await;
    println!("{page}");
    assert!(page.contains("Degraded") && page.contains("1 DOWN"), "{page}");
    let line = format!("why {name} --no-color");
    let why = eventually("and says why", async || shown(&line).await).await;
    println!("{why}");
    println!("{}\n{}", ask("history logs").await, ask("plan logs --no-color").await);

    eventually("the metric", async || (nodes_down(&reconciler).await? == 1).then_some(())).await;

    // What the message says is what brings it back.
    fixture.configure(&name, "").await;
    let restart = format!("restart logs --node {name} --id r2");
    ask(&restart).await;
    let entry = fixture.until_over("r2").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 1), "{entry:?}");
    until_none_is_down(&fixture).await;
    reconciler.end().await;
}

/// It has no master: the old ones are not in its cluster.
#[tokio::test] // proves RESTART-113
async fn a_node_that_finds_no_cluster_is_seen_at_rest() {
    a_node_outside_is_seen_at_rest("cluster.name: elsewhere", false).await;
}

/// It is its own master. Of the pods it is the first that is asked.
#[tokio::test] // proves RESTART-113
async fn a_node_in_a_cluster_of_its_own_is_seen_at_rest() {
    let alone = "cluster.name: elsewhere\ncluster.initial_master_nodes: logs-0\npath.data: ";
    a_node_outside_is_seen_at_rest(alone, true).await;
}

/// The node runs with these settings, and its pod is ready.
async fn a_node_outside_is_seen_at_rest(settings: &str, has_a_master: bool) {
    let fixture = Fixture::new("standin.fault_detection_ms: 1000").await;
    let name = NODES[0];
    let (settings, address) = fixture.with(name, |manager| {
        let fresh = manager.path("state").join("fresh");
        (
            settings.replace("path.data: ", &format!("path.data: {}", fresh.display())),
            manager.address.clone(),
        )
    });
    fixture.configure(name, &settings).await;
    fixture.mount(name).await;
    let engine = fixture.processes()[name].1.expect("an engine");
    send(engine, Signal::SIGKILL);
    let banner = eventually("it runs elsewhere, and is ready", async || {
        let is_ready = fixture.status(name).await.ready == Some(true);
        let (_, banner) = get(&address, "/").await?;
        (is_ready && banner["cluster_name"] == "elsewhere").then_some(banner)
    })
    .await;
    println!("{banner}");
    if has_a_master {
        let state = "/_cluster/state/nodes?master_timeout=30s";
        eventually("it is its own master", async || {
            let (status, state) = get(&address, state).await?;
            (status == 200 && state["nodes"].as_object()?.len() == 1).then_some(())
        })
        .await;
    }
    let (_directory, kubeconfig) = fixture.kubeconfig();
    let reconciler = Program::start(&kubeconfig, "first");

    let cluster = fixture
        // Before, a manager may not have answered yet.
        .until("the node is shown as down", |cluster| {
            let nodes = cluster.status.as_ref().map(|status| &status.report.nodes);
            let down = nodes.into_iter().flatten().filter_map(|node| node.down.as_deref());
            down.eq(["not_in_cluster"])
        })
        .await;
    let report = cluster.status.expect("a status").report;
    let down = report.nodes.iter().filter(|node| node.down.is_some());
    assert_eq!(down.map(|node| &*node.name).collect::<Vec<_>>(), [name], "{:?}", report.nodes);
    assert_eq!(report.counts.down, 1);
    let degraded = report.conditions.iter().find(|condition| condition.kind == "Degraded");
    let degraded = degraded.expect("the condition");
    assert_eq!((&*degraded.status, &*degraded.reason), ("True", "NodesDown"), "{degraded:?}");
    let message =
        "its engine is running, but not in the cluster; its log: `kubectl -n default logs";
    let why = kubectl(&kubeconfig, &format!("why {name} --no-color")).await;
    assert!(why.contains(&format!("DOWN: {message}")), "{why}");

    // Nothing is asked for. Each further reconcile shows it as well.
    for number in 0..3 {
        reconciled_again(&fixture, &reconciler, number).await;
        assert_eq!(nodes_down(&reconciler).await, Some(1), "reconcile {number}");
    }

    fixture.configure(name, "").await;
    kubectl(&kubeconfig, &format!("restart logs --node {name} --id back")).await;
    let entry = fixture.until_over("back").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 1), "{entry:?}");
    until_none_is_down(&fixture).await;
    reconciler.end().await;
}

/// Its set wants it, and something refuses the pod.
#[tokio::test] // proves RESTART-112
async fn a_pod_that_its_set_does_not_make_again_is_seen_at_rest() {
    let fixture = Fixture::new("").await;
    let set = json!({
        "metadata": {"name": "logs", "namespace": NAMESPACE},
        "spec": {
            "replicas": 3,
            "serviceName": "logs",
            "selector": {"matchLabels": {"app": "logs"}},
            "updateStrategy": {"type": "OnDelete"},
            "template": {
                "metadata": {"labels": {"app": "logs"}},
                "spec": {"containers": [{"name": "search", "image": "search"}]},
            },
        },
    });
    let set: StatefulSet = fixture.create(set).await;
    let owned = json!({"metadata": {"ownerReferences": [{
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "logs", "uid": set.metadata.uid,
        "controller": true,
    }]}});
    let pods = fixture.api::<Pod>();
    for name in NODES {
        let patch = Patch::Merge(&owned);
        pods.patch(name, &PatchParams::default(), &patch).await.expect("it is taken");
    }
    let (_directory, kubeconfig) = fixture.kubeconfig();
    let reconciler = Program::start(&kubeconfig, "first");
    fixture.until_seen().await;
    until_none_is_down(&fixture).await;

    pods.delete("logs-2", &DeleteParams::default()).await.expect("it is deleted");
    let cluster = fixture
        .until("the node is shown as down", |cluster| {
            cluster.status.as_ref().is_some_and(|status| status.report.counts.down == 1)
        })
        .await;
    let report = cluster.status.expect("a status").report;
    let down = report.nodes.iter().find(|node| node.down.is_some()).expect("a node that is down");
    assert_eq!((&*down.name, down.down.as_deref()), ("logs-2", Some("pod_missing")));
    let reason = |kind: &str| {
        let condition = report.conditions.iter().find(|condition| condition.kind == kind);
        condition.map(|condition| (&*condition.status, &*condition.reason))
    };
    assert_eq!(reason("Degraded"), Some(("True", "NodesDown")));
    assert_eq!(reason("Ready"), Some(("False", "NodesDown")));
    assert_eq!(reason("Available"), Some(("True", "Green")), "the engine is read");
    assert_eq!(nodes_down(&reconciler).await, Some(1));
    let status = kubectl(&kubeconfig, "status logs --no-color").await;
    assert!(status.contains("StatefulSet logs wants its pod, and there is none"), "{status}");

    // A set that is made smaller wants it no longer.
    let smaller = Patch::Merge(json!({"spec": {"replicas": 2}}));
    let sets = fixture.api::<StatefulSet>();
    sets.patch("logs", &PatchParams::default(), &smaller).await.expect("it is taken");
    reconciled_again(&fixture, &reconciler, 0).await;
    until_none_is_down(&fixture).await;
    reconciler.end().await;
}

/// Every node is in the cluster: a minute costs these requests to the engine, however often it is
/// reconciled.
#[tokio::test] // proves RESTART-113
async fn at_rest_the_engine_is_asked_for_little_and_once() {
    let fixture = Fixture::new("").await;
    let (_directory, kubeconfig) = fixture.kubeconfig();
    let reconciler = Program::start(&kubeconfig, "first");
    fixture.until_seen().await;
    for number in 0..3 {
        reconciled_again(&fixture, &reconciler, number).await;
    }
    let (_, metrics) = reconciler.get("/metrics").await.expect("it answers");
    let asked = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("stayput_requests_total{to=\"engine\",kind=\""));
    let mut asked: Vec<&str> = asked.collect();
    asked.sort_unstable();
    let once = |kind: &str| format!("{kind}\",outcome=\"ok\"}} 1");
    assert_eq!(asked, [once("allocation"), once("identify"), once("members")]);
    reconciler.end().await;
}

/// A change of the spec that asks for nothing makes another reconcile.
async fn reconciled_again(fixture: &Fixture, reconciler: &Program, number: u32) {
    let before = reconciles(reconciler).await;
    fixture.respec(json!({"restart": {"phaseTimeout": format!("{}s", 61 + number)}})).await;
    eventually("another reconcile", async || (reconciles(reconciler).await > before).then_some(()))
        .await;
}

async fn until_none_is_down(fixture: &Fixture) {
    fixture
        .until("no node is down and no person is waited for", |cluster| {
            let report = cluster.status.as_ref().map(|status| &status.report);
            let is_ready = |one: &Condition| one.kind == "Ready" && one.status == "True";
            report.is_some_and(|it| it.counts.down == 0 && it.conditions.iter().any(is_ready))
        })
        .await;
}

/// What a command of `kubectl stayput` prints.
async fn kubectl(kubeconfig: &Path, line: &str) -> String {
    let mut command = kubectl_stayput(kubeconfig, line.split_whitespace());
    let ended = tokio::task::spawn_blocking(move || finish(&mut command)).await;
    let ended = ended.expect("no panic");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{line}: {}", ended.stdout);
    ended.stdout
}

async fn get(host: &str, path: &str) -> Option<(u16, Value)> {
    let (host, path) = (host.to_owned(), path.to_owned());
    tokio::task::spawn_blocking(move || ask_at(&host, "GET", &path, None)).await.ok()?
}

async fn nodes_down(reconciler: &Program) -> Option<u64> {
    value(reconciler, "stayput_nodes_down{cluster=\"default/logs\"} ").await
}

async fn reconciles(reconciler: &Program) -> u64 {
    value(reconciler, "stayput_reconciles_total ").await.unwrap_or_default()
}

/// The value of the metric that this line begins with.
async fn value(reconciler: &Program, line: &str) -> Option<u64> {
    let (_, metrics) = reconciler.get("/metrics").await?;
    metrics.lines().find_map(|served| served.strip_prefix(line)?.parse().ok())
}
