//! Snapshots from the reconciler's port: all data of its decisions, and no secrets.

use std::net::{Ipv4Addr, SocketAddr};

use nix::sys::signal::Signal;
use serde_json::Value;
use stayput_controller::Settings;
use stayput_restart::{Outcome, Saved, forecast};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fixture::{Fixture, NODES, Reconciler};
use super::objects::{KEY, NAMESPACE, eventually};
use super::rolling::until_clean;
use crate::support::ports::free_loopback_port;
use crate::support::programs::send;

fn free() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_loopback_port()).into()
}

async fn get(address: SocketAddr, host: &str, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
}

/// Other nodes, and so the engine's node details, get no answer of it; the reconciler is new.
#[tokio::test] // proves RESTART-15
async fn a_node_that_hangs_is_unknown_and_the_rest_of_the_engine_is_known() {
    let fixture = Fixture::new("standin.fault_detection_ms: 600000").await;
    let state = fixture.engine_until("/_cluster/state/master_node,nodes").await;
    let master = state["master_node"].as_str().expect("a master");
    let master = state["nodes"][master]["name"].as_str().expect("a name");
    let hangs = NODES.into_iter().find(|name| *name != master).expect("three nodes");
    send(fixture.processes()[hangs].1.expect("an engine"), Signal::SIGSTOP);
    let address = free();
    let settings =
        Settings { name: "test".into(), snapshots: Some(address), ..Settings::default() };
    let reconciler = Reconciler::start_with(fixture.client.clone(), settings);
    let path = format!("/snapshots/{NAMESPACE}/logs");
    let text = eventually("a snapshot", async || {
        get(address, "localhost", &path).await.filter(|(status, _)| *status == 200)
    })
    .await
    .1;
    let engine = Saved::parse(&text).expect("a snapshot").snapshot.engine.expect("it answers");
    let nodes = engine.nodes.iter();
    let unknown: Vec<&str> =
        nodes.filter(|node| node.roles_unknown).map(|node| node.name.as_str()).collect();
    assert_eq!((engine.nodes.len(), unknown), (3, vec![hangs]));
    reconciler.end().await;
}

#[tokio::test] // proves RULE-19
async fn a_snapshot_foretells_the_restart_and_holds_no_secret() {
    let fixture = Fixture::new("node.attr.round: hush-hush").await;
    let address = free();
    let settings =
        Settings { name: "test".into(), snapshots: Some(address), ..Settings::default() };
    let reconciler = Reconciler::start_with(fixture.client.clone(), settings);
    fixture.until_seen().await;
    let path = format!("/snapshots/{NAMESPACE}/logs");
    let text = eventually("a snapshot", async || {
        get(address, "localhost", &path).await.filter(|(status, _)| *status == 200)
    })
    .await
    .1;
    let saved = Saved::parse(&text).expect("a snapshot");
    assert_eq!(saved.snapshot.pods.len(), NODES.len());
    assert!(saved.snapshot.engine.is_ok(), "the engine is asked, although there is no restart");
    for secret in [KEY, "hush-hush", "BEGIN", "eyJ", "manager-ca", "manager-key"] {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
    let planned = forecast(&saved.snapshot, &saved.policy, None);
    let turns = planned.steps.iter().flat_map(|step| &step.nodes);
    let planned: Vec<&str> = turns.map(|node| node.name.as_str()).collect();
    assert_eq!(planned.len(), 3, "{planned:?}");
    let entry = fixture.restart("r1", "rolling").await;
    assert_eq!(entry.outcome, Outcome::Done, "{entry:?}");
    let mut ended: Vec<(String, String)> = Vec::new();
    until_clean(&fixture, "r1").await;
    for name in NODES {
        let annotations = fixture.pod(name).await.metadata.annotations.expect("annotations");
        let last: Value = serde_json::from_str(&annotations["stayput.dev/last-restart"]).unwrap();
        ended.push((last["started"].as_str().unwrap().to_owned(), name.to_owned()));
    }
    ended.sort();
    let restarted: Vec<&str> = ended.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(restarted, planned, "they are restarted as forecast");

    let unknown = get(address, "127.0.0.1:9", "/snapshots/default/other").await.expect("answers");
    assert_eq!(unknown.0, 503, "{unknown:?}");
    assert!(
        unknown.1.contains("SearchCluster default/other is not reconciled here"),
        "{unknown:?}"
    );
    let rebound = get(address, "example.com", &path).await.expect("answers");
    assert_eq!(rebound.0, 403, "{rebound:?}");
    assert_eq!(get(address, "[::1]:1", "/nothing").await.map(|(status, _)| status), Some(404));
    reconciler.end().await;
}
