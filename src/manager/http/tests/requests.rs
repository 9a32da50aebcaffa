//! Every route, and every kind of wrong request.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::world::{World, running, stopped, token};
use crate::http::Limits;
use crate::http::body::MAX_BODY;
use stayput_api::Accepted;
use stayput_api::Refusal;
use stayput_api::{Code, State, Status};

#[tokio::test]
async fn the_status_is_shown_as_it_is() {
    let world = World::new().await;
    let mut client = world.unix().await;
    let answer = client.get("/es/status", None).await;
    assert_eq!(serde_json::from_slice::<Status>(&answer.body).unwrap(), running());
    let ahead: i64 = answer.header("stayput-times-ahead").parse().unwrap();
    assert!(ahead.abs() < 60_000, "{ahead}");
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.header("cache-control"), "no-store");
    world.publish(stopped());
    assert_eq!(client.get("/es/status", None).await.json()["state"], "stopped");
}

#[tokio::test]
async fn whoever_looks_asks_the_supervisor_where_there_is_a_probe() {
    let world = World::new().await;
    let mut client = world.unix().await;
    let probes = || world.script.lock().unwrap().probes;
    client.get("/es/status", None).await;
    client.get("/readyz", None).await;
    assert_eq!(probes(), 2);
    world.publish(Status { ready: None, ..running() });
    client.get("/es/status", None).await;
    client.get("/readyz", None).await;
    assert_eq!(probes(), 2);
}

#[tokio::test]
async fn requests_reach_the_supervisor_as_they_were_sent() {
    let world = World::new().await;
    let mut client = world.unix().await;
    let body = r#"{"sequence":43,"pod":"u-1","grace":"90s","drain":"10s"}"#;
    assert_eq!(client.post("/es/stop", None, body).await.status, 202);
    world.answer(Ok(Accepted { sequence: 44, done: true }));
    let checksum = format!("sha256:{}", "a".repeat(64));
    let body = format!(r#"{{"sequence":44,"checksum":"{checksum}","config":"last_good"}}"#);
    let done = client.post("/es/start", None, &body).await;
    assert_eq!((done.status.as_u16(), &done.json()["state"]), (200, &json!("running")));
    let seen = world.script.lock().unwrap().seen.clone();
    for part in ["Some(43)", "\"u-1\"", "Span(90000)", "Span(10000)"] {
        assert!(seen[0].contains(part), "{seen:?}");
    }
    for part in ["Some(44)", checksum.as_str(), "LastGood"] {
        assert!(seen[1].contains(part), "{seen:?}");
    }
}

#[tokio::test]
async fn a_drain_reaches_the_supervisor_and_is_answered_with_the_status() {
    let world = World::new().await;
    let mut client = world.unix().await;
    let answer = client.post("/es/drain", None, r#"{"sequence":43,"pod":"u-1"}"#).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["state"]), (200, &json!("running")));
    let seen = world.script.lock().unwrap().seen.clone();
    assert_eq!(seen, [r#"DrainRequest { sequence: Some(43), pod: Some("u-1") }"#]);
    let refused = client.post("/es/drain", None, r#"{"drain":"10s"}"#).await;
    assert_eq!(refused.problem(), (400, "invalid_body".into()));
}

#[tokio::test]
async fn refusals_carry_code_sentence_and_current_status() {
    let world = World::new().await;
    let mut client = world.unix().await;
    for code in [Code::StaleSequence, Code::ChecksumMismatch, Code::SpawnFailed, Code::Terminating]
    {
        world.answer(Err(Refusal::new(code, "what was wrong")));
        let refused = client.post("/es/start", None, "{}").await;
        assert_eq!(refused.problem(), (code.http_status(), code.as_str().to_owned()));
        assert_eq!(refused.json()["detail"], "what was wrong");
        assert_eq!(refused.json()["current"]["cursor"], running().cursor.0);
    }
}

#[tokio::test]
async fn bodies_that_cannot_be_used_are_named_and_go_no_further() {
    let world = World::new().await;
    let mut client = world.unix().await;
    for (body, part) in [
        ("{\"sequenc\":7}", "sequenc"),
        ("{\"sequence\":\"7\"}", "sequence"),
        ("[7]", "object"),
        ("{", "body"),
        ("\u{0}", "object"),
    ] {
        let refused = client.post("/es/stop", None, body).await;
        assert_eq!(refused.problem(), (400, "invalid_body".into()));
        assert!(refused.json()["detail"].as_str().unwrap().contains(part), "{refused:?}");
        assert_eq!(refused.json()["current"]["state"], "running");
    }
    for target in [
        "/es/stop?wiat=1s",
        "/es/stop?wait=soon",
        "/es/start?after=a",
        "/es/stop?wait",
        "/es/drain?wait=1s",
    ] {
        let refused = client.post(target, None, "").await;
        assert_eq!(refused.problem(), (400, "invalid_query".into()), "{target}");
    }
    for target in ["/es/status?x=1", "/es/status?after=a&timeout=-1", "/es/status?after=%f"] {
        assert_eq!(client.get(target, None).await.problem(), (400, "invalid_query".into()));
    }
    assert!(world.script.lock().unwrap().seen.is_empty());
}

#[tokio::test]
async fn oversize_bodies_are_refused_before_they_are_read() {
    let world = World::new().await;
    let mut client = world.unix().await;
    let fits = format!("{{}}{}", " ".repeat(MAX_BODY - 2));
    assert_eq!(client.post("/es/stop", None, &fits).await.status, 202);
    let refused = client.post("/es/stop", None, &format!("{fits} ")).await;
    assert_eq!(refused.problem(), (413, "body_too_large".into()));
    assert_eq!(refused.header("connection"), "close");
}

#[tokio::test] // proves ACCESS-3
async fn a_request_names_its_host_once() {
    let world = World::new().await;
    for (hosts, status) in [("", 400), ("host: a\r\n", 200), ("host: a\r\nhost: b\r\n", 400)] {
        let mut stream = UnixStream::connect(world.path("socket")).await.unwrap();
        let request = format!("GET /livez HTTP/1.1\r\n{hosts}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{hosts:?}: {answer}");
    }
}

#[tokio::test]
async fn unknown_routes_and_methods_are_named() {
    let world = World::new().await;
    let mut client = world.tls(None).await;
    for target in ["/", "/es", "/es/status/", "//es/status", "/es/Status", "/livez/x", "*"] {
        let refused = client.get(target, None).await;
        assert_eq!(refused.problem(), (404, "not_found".into()), "{target}");
    }
    for (method, target, allow) in [
        ("POST", "/es/status", "GET, HEAD"),
        ("PUT", "/es/stop", "POST"),
        ("GET", "/es/start", "POST"),
        ("HEAD", "/es/start", "POST"),
        ("GET", "/es/drain", "POST"),
        ("DELETE", "/metrics", "GET, HEAD"),
        ("OPTIONS", "/livez", "GET, HEAD"),
        ("BREW", "/readyz", "GET, HEAD"),
    ] {
        let refused = client.send(method, target, None, "").await.unwrap();
        assert_eq!(refused.status, 405, "{method} {target}");
        assert_eq!(refused.header("allow"), allow);
    }
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let world = World::new().await;
    let mut client = world.tls(None).await;
    let token = token("es:read");
    for target in ["/es/status", "/livez", "/readyz", "/metrics"] {
        let answer = client.send("HEAD", target, Some(&token), "").await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.body.len()), (200, 0), "{target}");
    }
}

#[tokio::test]
async fn a_deliberate_stop_is_alive_and_not_ready() {
    let world = World::new().await;
    let mut client = world.tls(None).await;
    world.publish(stopped());
    let ready = client.get("/readyz", None).await;
    assert_eq!((ready.status.as_u16(), &ready.body[..]), (503, &b"no\n"[..]));
    assert_eq!(client.get("/livez", None).await.status, 200);
    for (state, answer, code) in [
        (State::Running, Some(true), 200),
        (State::Running, None, 200),
        (State::Starting, Some(true), 503),
        // It was not ready a moment ago in this run.
        (State::Running, Some(false), 503),
        (State::Stopping, Some(true), 503),
    ] {
        world.publish(Status { state, ready: answer, ..running() });
        assert_eq!(client.get("/readyz", None).await.status, code, "{state:?} {answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_that_hangs_is_not_alive() {
    let world = World::new().await;
    let mut client = world.unix().await;
    world.script.lock().unwrap().hangs = true;
    assert_eq!(client.get("/livez", None).await.status, 503);
    assert_eq!(client.get("/readyz", None).await.status, 503);
    // What is known is still in the answer.
    assert_eq!(client.get("/es/status", None).await.status, 200);
}

/// As on a machine that stands still: the engine was ready a moment ago.
#[tokio::test(start_paused = true)]
async fn a_supervisor_that_is_late_for_a_moment_takes_no_pod_out_of_its_service() {
    let world = World::new().await;
    let mut client = world.unix().await;
    assert_eq!(client.get("/readyz", None).await.status, 200);
    world.script.lock().unwrap().hangs = true;
    assert_eq!(client.get("/readyz", None).await.status, 200);
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(client.get("/readyz", None).await.status, 503);
}

#[tokio::test]
async fn metrics_count_requests_by_our_own_words_only() {
    let world = World::new().await;
    let mut client = world.unix().await;
    client.get("/made/up/by/the/caller", None).await;
    client.send("BREW", "/livez", None, "").await.unwrap();
    let metrics = client.get("/metrics", None).await;
    assert!(metrics.header("content-type").starts_with("text/plain; version=0.0.4"));
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    for line in [
        "stayput_http_requests_total{route=\"other\",method=\"GET\",status=\"404\",code=\"not_found\"} 1",
        "stayput_http_requests_total{route=\"/livez\",method=\"other\",status=\"405\",code=\"method_not_allowed\"} 1",
        "stayput_engine_state{state=\"running\"} 1",
        "stayput_key_reload_failed 0",
    ] {
        assert!(text.lines().any(|own| own == line), "no {line} in\n{text}");
    }
    assert!(!text.contains("made") && !text.contains("BREW"));
}

#[tokio::test]
async fn ends_of_runs_are_counted() {
    let world = World::new().await;
    let mut client = world.unix().await;
    world.publish(stopped());
    super::world::eventually(async || {
        let text = client.get("/metrics", None).await.body;
        String::from_utf8_lossy(&text).contains("stayput_engine_exits_total{reason=\"stopped\"} 1")
    })
    .await;
}

#[test]
fn no_request_is_answered_with_a_fault_or_not_at_all() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limits = Limits { max_wait: Duration::from_millis(1), ..Limits::default() };
    let world = runtime.block_on(World::with(limits, |_| ()));
    proptest!(ProptestConfig::with_cases(256), |(
        method in "GET|HEAD|POST|PUT|[A-Z]{1,8}",
        path in "/(es/(status|stop|start)|livez|readyz|metrics|[!-\"$->@-~]{0,20})",
        query in "(\\?(after|timeout|wait|[a-z]{0,4})=[!-\"$-~]{0,10}(&[!-\"$-~]{0,10})?)?",
        body in "(\\{\"(sequence|grace|pod|config)\":[ -~]{0,10}\\}|[ -~]{0,40})",
    )| {
        let target = format!("{path}{query}");
        // CONNECT has another kind of target, which hyper checks.
        prop_assume!(target.parse::<hyper::Uri>().is_ok() && method != "CONNECT");
        let answer = runtime.block_on(async {
            world.unix().await.send(&method, &target, None, &body).await.unwrap()
        });
        let status = answer.status.as_u16();
        prop_assert!(matches!(status, 200 | 202 | 204 | 400 | 404 | 405), "{}", status);
    });
}
