//! Restarts wait for a gate on the SearchCluster, and go on when it is opened for them.

use serde_json::json;
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{Outcome, annotation};

use super::fixture::{Fixture, NODES, Reconciler};

#[tokio::test] // proves UPDATE-41
async fn a_gate_holds_a_restart_until_it_is_opened_for_it() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    let gate = format!("{}backup", annotation::GATE);
    fixture.annotate(&gate, Some("waits for the backup")).await;
    fixture.ask("r1", "rolling").await;
    let message = fixture.until_blocked("gate_closed").await;
    assert!(message.contains("--overwrite gate.stayput.dev/backup=r1"), "{message}");
    for name in NODES {
        assert_eq!(fixture.starts(name).await, 1, "{name}");
    }
    // Nothing but the annotation changes: the watch has to wake the reconciler.
    fixture.annotate(&gate, Some("r1")).await;
    let over = fixture.until_over("r1").await;
    assert_eq!((over.outcome, over.nodes), (Outcome::Done, 3), "{over:?}");
    reconciler.end().await;
}

#[tokio::test] // proves UPDATE-52
async fn a_gate_after_a_restart_holds_the_next_one_until_it_was_checked() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    let gate = format!("{}smoke-test", annotation::GATE_AFTER);
    fixture.annotate(&gate, Some("run by the pipeline")).await;
    // Nothing has ended yet.
    let over = fixture.restart("r1", "rolling").await;
    assert_eq!((over.outcome, over.nodes), (Outcome::Done, 3), "{over:?}");
    fixture.ask("r2", "rolling").await;
    let message = fixture.until_blocked("gate_closed").await;
    let command = "--namespace default --overwrite after.gate.stayput.dev/smoke-test=r1";
    assert!(message.starts_with("restart r1 has ended") && message.ends_with(command), "{message}");
    for name in NODES {
        assert_eq!(fixture.starts(name).await, 2, "{name}");
    }
    fixture.annotate(&gate, Some("r1")).await;
    let over = fixture.until_over("r2").await;
    assert_eq!((over.outcome, over.nodes), (Outcome::Done, 3), "{over:?}");
    fixture.ask("r3", "rolling").await;
    let message = fixture.until_blocked("gate_closed").await;
    assert!(message.ends_with("smoke-test=r2"), "{message}");
    reconciler.end().await;
}

#[tokio::test] // proves UPDATE-37
async fn a_rule_is_skipped_by_one_request_and_shown_as_long_as_it_lives() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    let gate = format!("{}look", annotation::GATE);
    fixture.annotate(&gate, Some("closed")).await;
    let request = json!({"id": "r1", "skipRules": ["one_master_at_a_time"]}).to_string();
    fixture.annotate(annotation::REQUEST, Some(&request)).await;
    let is_shown = |cluster: &SearchCluster| {
        let status = cluster.status.as_ref();
        let mut all = status.into_iter().flat_map(|status| &status.report.conditions);
        all.any(|one| {
            one.kind == "PredicatesDisabled"
                && one.status == "True"
                && one.message.starts_with("one_master_at_a_time is not evaluated")
        })
    };
    fixture.until("it is shown", is_shown).await;
    fixture.annotate(&gate, None).await;
    let over = fixture.until_over("r1").await;
    assert_eq!((over.outcome, over.nodes), (Outcome::Done, 3), "{over:?}");
    assert_eq!(over.skipped_rules, ["one_master_at_a_time"]);
    fixture.until("it is shown no more", |cluster| !is_shown(cluster)).await;
    reconciler.end().await;
}

/// With one of three nodes kept stopped, the stop of another costs the quorum.
#[tokio::test] // proves UPDATE-39
async fn an_outage_is_allowed_by_one_request_and_the_next_one_waits_again() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.respec(json!({"stopped": ["logs-0"]})).await;
    let is_kept = |cluster: &SearchCluster| {
        let status = cluster.status.as_ref();
        status.is_some_and(|status| status.report.counts.stopped == 1)
    };
    fixture.until("logs-0 is kept stopped", is_kept).await;
    let ask = async |id: &str, allow_outage: bool| {
        let target = json!({"nodes": ["logs-1"]});
        let request = json!({"id": id, "target": target, "allowOutage": allow_outage}).to_string();
        fixture.annotate(annotation::REQUEST, Some(&request)).await;
    };
    ask("r1", false).await;
    let message = fixture.until_blocked("quorum").await;
    assert!(message.contains("as a last resort, accept an outage: cancel this"), "{message}");
    fixture.annotate(annotation::CANCEL, Some("r1")).await;
    ask("r2", true).await;
    let over = fixture.until_over("r2").await;
    assert_eq!(
        (over.outcome, over.nodes, over.allowed_outage),
        (Outcome::Done, 1, true),
        "{over:?}"
    );
    assert_eq!(fixture.starts("logs-1").await, 2);
    let before = fixture.until_over("r1").await;
    assert_eq!((before.nodes, before.allowed_outage), (0, false), "{before:?}");
    ask("r3", false).await;
    fixture.until_blocked("quorum").await;
    assert_eq!(fixture.starts("logs-1").await, 2);
    reconciler.end().await;
}
