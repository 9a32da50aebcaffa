//! Restarts wait for a maintenance window.

use std::time::{Duration, SystemTime};

use serde_json::json;
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{Outcome, annotation};

use super::fixture::{Fixture, NODES, Reconciler};

#[tokio::test] // proves UPDATE-53
async fn a_restart_waits_for_its_window_unless_the_request_says_otherwise() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    // It opens in half a day, whenever this runs.
    let opens = humantime::format_rfc3339(SystemTime::now() + Duration::from_secs(12 * 60 * 60));
    let opens = opens.to_string();
    let window = json!({"start": &opens[11..16], "duration": "1h"});
    fixture.respec(json!({"restart": {"windows": [window]}})).await;

    fixture.ask("r1", "rolling").await;
    let message = |cluster: &SearchCluster| {
        cluster.status.as_ref().and_then(|status| status.report.message.clone())
    };
    let waits = |cluster: &SearchCluster| {
        message(cluster).is_some_and(|message| message.contains("maintenance windows"))
    };
    let says = message(&fixture.until("it waits", waits).await).expect("a message");
    assert!(says.contains(&format!("opens at {}", &opens[..16])), "{says}");
    for name in NODES {
        assert_eq!(fixture.starts(name).await, 1, "{name}");
    }

    fixture.annotate(annotation::CANCEL, Some("r1")).await;
    assert_eq!(fixture.until_over("r1").await.outcome, Outcome::Aborted);
    let request = json!({"id": "r2", "outsideWindows": true}).to_string();
    fixture.annotate(annotation::REQUEST, Some(&request)).await;
    let over = fixture.until_over("r2").await;
    assert_eq!((over.outcome, over.nodes), (Outcome::Done, 3), "{over:?}");
    reconciler.end().await;
}
