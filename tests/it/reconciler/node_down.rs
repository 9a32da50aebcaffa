//! A node that is down after a restart, as a user sees it with `kubectl stayput` and in the metrics.

use serde_json::json;
use stayput_restart::{Condition, Outcome};

use super::fixture::{Fixture, NODES};
use super::objects::eventually;
use super::program::Program;
use crate::support::program::{finish, kubectl_stayput};

#[tokio::test]
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

    let ask = async |line: &str| {
        let mut command = kubectl_stayput(&kubeconfig, line.split_whitespace());
        let ended = tokio::task::spawn_blocking(move || finish(&mut command)).await;
        let ended = ended.expect("no panic");
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{line}: {}", ended.stdout);
        ended.stdout
    };
    let page = ask("status logs --no-color").await;
    println!("{page}");
    assert!(page.contains("Degraded") && page.contains("1 DOWN"), "{page}");
    assert!(page.contains(&format!("DOWN: {message}")), "{page}");
    let why = ask(&format!("why {name} --no-color")).await;
    println!("{why}");
    assert!(why.contains(&format!("DOWN: {message}")), "{why}");
    println!("{}\n{}", ask("history logs").await, ask("plan logs --no-color").await);

    eventually("the metric", async || {
        let (_, metrics) = reconciler.get("/metrics").await?;
        metrics.contains("stayput_nodes_down{cluster=\"default/logs\"} 1\n").then_some(())
    })
    .await;

    // What the message says is what brings it back.
    fixture.configure(&name, "").await;
    let restart = format!("restart logs --node {name} --id r2");
    ask(&restart).await;
    let entry = fixture.until_over("r2").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 1), "{entry:?}");
    fixture
        .until("no node is down and no person is waited for", |cluster| {
            let report = cluster.status.as_ref().map(|status| &status.report);
            let is_ready = |one: &Condition| one.kind == "Ready" && one.status == "True";
            report.is_some_and(|it| it.counts.down == 0 && it.conditions.iter().any(is_ready))
        })
        .await;
    reconciler.end().await;
}
