//! While looks fail: what a manager does still ends the wait, once. Nothing here asks an apiserver.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;

use super::*;
use crate::apiserver::Apiserver;
use crate::clusters::{Clusters, LiveCluster};
use crate::context::Shared;
use crate::definition::Definition;
use crate::failure::Failure;
use crate::http_server::Health;
use crate::http_server::SnapshotQueues;
use crate::lease::Lease;
use crate::metrics::Metrics;
use crate::reconcile::after_failure;
use crate::run::Settings;
use stayput_api::Status;
use stayput_http::manager_client::Address;

/// Longer than a failed poll takes, and shorter than one that nothing answers.
const QUIET: Duration = Duration::from_secs(30);
/// The wait does not end by itself.
const LONG: Duration = Duration::from_secs(3_600);

fn status(cursor: &str) -> Value {
    json!({
        "manager": {
            "version": "0.1.0", "boot_id": "b", "pid": 1, "since": "2026-11-21T09:00:00Z",
            "durable": true, "pod": { "namespace": "search", "name": "logs-0", "uid": null },
            "log_lines_lost": 0, "errors": [],
        },
        "cursor": cursor, "desired": "stopped", "state": "stopping", "ready": null,
        "since": "2026-11-21T09:00:00Z", "sequence": 1, "run": null, "starts": 1, "last_exit": null,
        "last_request": null, "config": null, "reason": null,
    })
}

/// A manager that answers long polls.
struct Polled {
    cursor: watch::Sender<&'static str>,
    client: ManagerClient,
    directory: tempfile::TempDir,
}

impl Polled {
    fn new(cursor: &'static str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("manager");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let (sender, receiver) = watch::channel(cursor);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, receiver.clone()));
            }
        });
        let client = ManagerClient::new(Address::Socket(socket)).expect("a client");
        Self { cursor: sender, client, directory }
    }
}

/// Answers one long poll once the cursor is another one.
async fn answer(stream: UnixStream, mut cursor: watch::Receiver<&'static str>) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.expect("a request") == 0 {
            return;
        }
    }
    let after = head.split_once("after=").expect("a long poll").1;
    let after = after.split('&').next().unwrap_or_default();
    let now = *cursor.wait_for(|now| *now != after).await.expect("a manager");
    let body = status(now).to_string();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    // The client may have ended the poll.
    let _ = stream.write_all(answer.as_bytes()).await;
}

/// The task of a SearchCluster in whose restart logs-0 is under way; its manager was observed.
fn context(manager: &Polled) -> Context {
    let nowhere = kube::Config::new("http://127.0.0.1:1".parse().expect("a URL"));
    let client = kube::Client::try_from(nowhere).expect("a client");
    let metrics = Arc::new(Metrics::new());
    let shared = Shared {
        api: Apiserver::new(client, Arc::clone(&metrics)),
        lease: Lease::not_needed(),
        metrics,
        settings: Arc::new(Settings::default()),
        health: Arc::new(Health::default()),
        definition: Definition::right_for_test(),
    };
    let key = ("search".to_owned(), "logs".to_owned());
    let (shown, clusters) = watch::channel(Arc::new(Clusters::new()));
    // As long as the task.
    std::mem::forget(shown);
    let view = LiveCluster::new(key.clone(), clusters, tracing::Span::none());
    let mut cx = Context::new(&key, view, &shared);
    let under_way = json!({
        "podUid": "uid-0", "pod": "logs-0", "node": "logs-0", "step": "restarting",
        "since": "2026-11-21T09:00:00Z", "stopSequence": 1, "startSequence": 2,
    });
    let cluster = json!({
        "apiVersion": "stayput.dev/v1alpha1",
        "kind": "SearchCluster",
        "metadata": { "name": "logs", "namespace": "search" },
        "spec": {
            "pods": { "selector": { "matchLabels": { "app": "logs" } } },
            "engine": { "scheme": "http" },
            "manager": { "caSecret": "ca", "auth": { "serviceAccountToken": {} } },
        },
        "status": {"ledger": {
            "restart": {
                "request": { "id": "r1" }, "started": "2026-11-21T09:00:00Z",
                "members": [under_way],
            },
        }},
    });
    cx.cluster.replace(serde_json::from_value(cluster).expect("a SearchCluster"));
    let told: Status = serde_json::from_value(status(*manager.cursor.borrow())).expect("a status");
    cx.observer.facts.managers.told_for_test("uid-0", manager.client.clone(), told);
    cx
}

#[tokio::test(start_paused = true)] // proves RESTART-21
async fn after_looks_that_failed_each_change_of_a_manager_ends_the_wait_once() {
    let manager = Polled::new("c1");
    let mut cx = context(&manager);
    let mut polls = ManagerPolls::default();
    let queues = SnapshotQueues::default();
    let mut snapshots = queues.open(("search".into(), "logs".into()));
    for cursor in ["c2", "c3", "c4"] {
        let failed = after_failure(&mut cx, &Failure::EngineNotObserved).await;
        let next = Next { after: LONG, ..failed };
        let quiet = timeout(QUIET, wait(&mut cx, &mut polls, &mut snapshots, next)).await;
        assert!(quiet.is_err(), "before {cursor} nothing happened");
        manager.cursor.send_replace(cursor);
        let failed = after_failure(&mut cx, &Failure::EngineNotObserved).await;
        let next = Next { after: LONG, ..failed };
        let heard = timeout(QUIET, wait(&mut cx, &mut polls, &mut snapshots, next)).await;
        assert!(heard.is_ok(), "{cursor} was not heard");
    }
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_gives_no_answer_is_reported_once_until_it_is_observed_again() {
    let manager = Polled::new("c1");
    let observed = || vec![("uid-0".to_owned(), manager.client.clone(), Cursor("c1".into()))];
    let mut polls = ManagerPolls::default();
    // It is gone.
    std::fs::remove_file(manager.directory.path().join("manager")).expect("a socket");
    polls.set(observed());
    assert!(timeout(QUIET, polls.changed()).await.is_ok());
    // The look after it failed.
    polls.set(observed());
    assert!(timeout(QUIET, polls.changed()).await.is_err());
    let later = vec![("uid-0".to_owned(), manager.client.clone(), Cursor("c2".into()))];
    polls.set(later);
    assert!(timeout(QUIET, polls.changed()).await.is_ok());
}

#[test] // proves RESTART-34
fn not_more_managers_are_waited_for_than_there_are_descriptors_for() {
    let client = ManagerClient::new(Address::Socket("manager".into())).expect("a client");
    let told: Status = serde_json::from_value(status("c1")).expect("a status");
    let mut managers = Managers::default();
    let members = (0..MAX_POLLS + 44).map(|number| {
        let uid = format!("uid-{number}");
        managers.told_for_test(&uid, client.clone(), told.clone());
        json!({
            "podUid": uid, "pod": uid, "node": uid, "step": "restarting",
            "since": "2026-11-21T09:00:00Z", "stopSequence": 1, "startSequence": 2,
        })
    });
    let restart = json!({
        "request": { "id": "r1" }, "started": "2026-11-21T09:00:00Z",
        "members": members.collect::<Vec<_>>(),
    });
    let restart = serde_json::from_value(restart).expect("a restart");
    let ledger = Ledger { restart, ..Ledger::default() };
    let polled = managers_to_poll(Some(&ledger), &managers);
    let first: Vec<&str> = ledger.busy_pods().take(MAX_POLLS).collect();
    assert_eq!(polled.iter().map(|(uid, _, _)| uid.as_str()).collect::<Vec<_>>(), first);
}
