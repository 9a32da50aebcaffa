//! What is sent when something changes.

use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::html::{Page, changes};
use crate::tests::{idle, pods, ready, rolling};
use crate::ui::feed::Seen;
use crate::ui::server::{self, events};
use crate::ui::tests::model;

fn ids(before: &Page, now: &Page) -> Vec<String> {
    changes(Some(before), now).iter().map(|change| change.id.to_owned()).collect()
}

#[test] // proves PAGE-8
fn of_a_thousand_nodes_one_that_changes_is_sent() {
    let mut pods = ready(1000);
    let before = Page::new(&model(&idle(), pods.clone()));
    assert_eq!(ids(&before, &before), [""; 0]);
    pods[7]["status"]["conditions"][0]["status"] = "False".into();
    let now = Page::new(&model(&idle(), pods.clone()));
    assert_eq!(ids(&before, &now), ["summary", "legend", "pod-logs-7"]);
    let sent: usize = changes(Some(&before), &now).iter().map(|change| change.html.len()).sum();
    assert!(sent < 2000, "{sent} bytes for one node");
    pods.pop();
    let fewer = Page::new(&model(&idle(), pods));
    assert_eq!(ids(&now, &fewer), ["summary", "legend", "picture"]);
}

#[test] // proves PAGE-5
fn a_phase_changes_what_is_said_and_shown() {
    let before = Page::new(&model(&idle(), pods()));
    let now = Page::new(&model(&rolling(), pods()));
    let changed = ids(&before, &now);
    for id in ["title", "news", "summary", "legend", "nodes", "lines", "history", "pod-logs-1"] {
        assert!(changed.iter().any(|changed| changed == id), "{id} in {changed:?}");
    }
}

fn seen(version: u64, status: &Value) -> Seen {
    Seen { version, page: Page::new(&model(status, pods())).into() }
}

async fn next(body: &mut server::Body) -> String {
    let frame = body.frame().await.expect("it goes on").unwrap().into_data().unwrap();
    String::from_utf8(frame.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)] // proves PAGE-5
async fn a_slow_reader_gets_the_last_state_and_no_queue() {
    let (sender, receiver) = watch::channel(seen(1, &idle()));
    let mut body = events(receiver, Some(1));
    assert_eq!(next(&mut body).await, ":\n\n", "the browser has this version");
    let mut status = idle();
    for version in 2..=500 {
        status["message"] = format!("message {version}").into();
        sender.send_replace(seen(version, &status));
    }
    let event = next(&mut body).await;
    assert!(event.starts_with("id: 500\ndata: [") && event.ends_with("]\n\n"), "{event}");
    assert!(event.contains("message 500") && !event.contains("message 499"), "{event}");
    // Nothing else was kept for it; a reader that is gone is noticed by this.
    let later = timeout(Duration::from_secs(1), next(&mut body)).await;
    assert!(later.is_err(), "{later:?}");
    assert_eq!(next(&mut body).await, ":\n\n");
    drop(sender);
    assert!(body.frame().await.is_none(), "it ends with what is followed");
}

#[tokio::test] // proves PAGE-5
async fn a_browser_with_another_version_gets_everything() {
    for version in [None, Some(0), Some(2)] {
        let (_sender, receiver) = watch::channel(seen(1, &idle()));
        let event = next(&mut events(receiver, version)).await;
        for id in ["title", "summary", "picture", "history"] {
            assert!(event.contains(&format!("\"id\":\"{id}\"")), "{version:?}: {event}");
        }
    }
}
