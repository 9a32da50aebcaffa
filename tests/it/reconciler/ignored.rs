//! Changes of the config that do not count.

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{HistoryEntry, Outcome, annotation};

use super::fixture::{Fixture, NODES, Reconciler};

async fn ignore(fixture: &Fixture, value: Value) {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"stayput.dev/ignore": value}}}));
    for name in NODES {
        let api = fixture.api::<Secret>();
        let object = format!("{name}-config");
        api.patch(&object, &PatchParams::default(), &patch).await.expect("it is taken");
    }
}

fn history(cluster: &SearchCluster) -> &[HistoryEntry] {
    cluster.status.as_ref().map_or(&[], |status| &status.ledger.history)
}

#[tokio::test] // proves UPDATE-61
async fn a_change_of_an_ignored_secret_restarts_nothing_and_the_next_that_counts_does() {
    let fixture = Fixture::new("node.attr.rack: r1").await;
    fixture.respec(json!({"restart": {"onConfigChange": "rolling"}})).await;
    let reconciler = Reconciler::start(fixture.client.clone());
    let all_answer = |cluster: &SearchCluster| {
        let counts = cluster.status.as_ref().map(|status| &status.report.counts);
        counts.is_some_and(|counts| counts.pods == 3 && counts.unreachable == 0)
    };
    fixture.until("all managers have answered", all_answer).await;

    ignore(&fixture, json!("true")).await;
    for name in NODES {
        fixture.configure(name, "node.attr.rack: r2").await;
        fixture.mount(name).await;
    }
    // While something is under way, everything is read at once.
    let request = json!({"id": "one", "strategy": "rolling", "target": {"nodes": ["logs-0"]}});
    fixture.annotate(annotation::REQUEST, Some(&request.to_string())).await;
    assert_eq!(fixture.until_over("one").await.outcome, Outcome::Done);
    let is_remembered = |cluster: &SearchCluster| {
        let status = cluster.status.as_ref();
        status.is_some_and(|status| !status.ledger.ignored_changes.is_empty())
    };
    let cluster = fixture.until("what the others count as is remembered", is_remembered).await;
    assert_eq!(history(&cluster).len(), 1, "{:?}", history(&cluster));
    reconciler.end().await;

    // From now on it counts; what was changed before does not, for another reconciler, too.
    ignore(&fixture, Value::Null).await;
    fixture.configure("logs-1", "node.attr.rack: r3").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    until_one_is_restarted(&fixture, 2, [2, 2, 1]).await;
    reconciler.end().await;
}

#[tokio::test] // proves UPDATE-61
async fn an_ignored_change_that_was_mounted_while_no_reconciler_ran_restarts_nothing() {
    let fixture = Fixture::new("node.attr.rack: r1").await;
    fixture.respec(json!({"restart": {"onConfigChange": "rolling"}})).await;
    ignore(&fixture, json!("true")).await;
    for name in NODES {
        fixture.configure(name, "node.attr.rack: r2").await;
        fixture.mount(name).await;
    }

    // Nobody has read the list of files that the engines were started on.
    let reconciler = Reconciler::start(fixture.client.clone());
    let is_judged = |cluster: &SearchCluster| {
        let status = cluster.status.as_ref();
        let is_remembered = status.is_some_and(|status| !status.ledger.ignored_changes.is_empty());
        is_remembered || !history(cluster).is_empty()
    };
    let cluster = fixture.until("the change is judged", is_judged).await;
    assert!(history(&cluster).is_empty(), "{:?}", history(&cluster));

    // It is not that nothing is seen. Another reconciler reads the sources at once.
    reconciler.end().await;
    ignore(&fixture, Value::Null).await;
    fixture.configure("logs-1", "node.attr.rack: r3").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    until_one_is_restarted(&fixture, 1, [1, 2, 1]).await;
    reconciler.end().await;
}

/// Waits until so many restarts are over, and checks that the last one has restarted one node, and how
/// often each engine was started.
async fn until_one_is_restarted(fixture: &Fixture, restarts: usize, starts: [u64; 3]) {
    let is_over = |cluster: &SearchCluster| history(cluster).len() == restarts;
    let cluster = fixture.until("the change that counts is made", is_over).await;
    let entry = &history(&cluster)[restarts - 1];
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 1), "{entry:?}");
    for (name, starts) in NODES.into_iter().zip(starts) {
        assert_eq!(fixture.starts(name).await, starts, "{name}");
    }
}
