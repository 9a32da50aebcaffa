//! Slow, greedy and silent clients are disconnected, and probes are answered.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use super::world::{Client, Response, World, eventually, running, stopped, token};
use crate::http::Limits;

async fn rest(stream: &mut UnixStream) -> String {
    let mut text = Vec::new();
    // A reset also counts as the end.
    let _ = stream.read_to_end(&mut text).await;
    String::from_utf8(text).unwrap()
}

#[tokio::test(start_paused = true)]
async fn slow_headers_and_slow_bodies_get_408() {
    let world = World::new().await;
    let mut slow_head = UnixStream::connect(world.path("socket")).await.unwrap();
    slow_head.write_all(b"GET /livez HTTP/1.1\r\nhost:").await.unwrap();
    assert!(rest(&mut slow_head).await.starts_with("HTTP/1.1 408 "));

    let mut slow_body = UnixStream::connect(world.path("socket")).await.unwrap();
    let head = b"POST /es/stop HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n{";
    slow_body.write_all(head).await.unwrap();
    let answer = rest(&mut slow_body).await;
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("request_timeout"), "{answer}");
    assert!(world.script.lock().unwrap().seen.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_chunked_body_is_held_to_the_limit_too() {
    let world = World::new().await;
    let mut stream = UnixStream::connect(world.path("socket")).await.unwrap();
    stream
        .write_all(b"POST /es/stop HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        .await
        .unwrap();
    for _ in 0..5 {
        let chunk = [b"1000\r\n".as_slice(), &[b' '; 0x1000], b"\r\n"].concat();
        // It may be refused before all of it is sent.
        let _ = stream.write_all(&chunk).await;
    }
    assert!(rest(&mut stream).await.starts_with("HTTP/1.1 413 "));
}

#[tokio::test(start_paused = true)]
async fn idle_connections_are_closed_without_a_word() {
    let world = World::new().await;
    let mut silent = UnixStream::connect(world.path("socket")).await.unwrap();
    assert_eq!(rest(&mut silent).await, "");
    let mut kept = UnixStream::connect(world.path("socket")).await.unwrap();
    kept.write_all(b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let answer = rest(&mut kept).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok\n"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_does_not_come_is_not_waited_for() {
    let world = World::new().await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let mut byte = [0];
    assert!(!stream.read(&mut byte).await.is_ok_and(|count| count > 0));
}

#[tokio::test]
async fn requests_that_are_none_are_refused() {
    let world = World::new().await;
    let many = "a: b\r\n".repeat(100);
    let long = format!("a: {}\r\n", "b".repeat(20_000));
    for (head, code) in [
        ("nonsense\r\n\r\n".to_owned(), "400"),
        ("GET /livez HTTP/1.1\r\nbad header\r\n\r\n".to_owned(), "400"),
        (format!("GET /livez HTTP/1.1\r\n{many}\r\n"), "431"),
        (format!("GET /livez HTTP/1.1\r\n{long}\r\n"), "431"),
    ] {
        let mut stream = UnixStream::connect(world.path("socket")).await.unwrap();
        let _ = stream.write_all(head.as_bytes()).await;
        let answer = rest(&mut stream).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{head:.40}: {answer}");
    }
}

#[tokio::test]
async fn a_refused_body_does_not_cost_its_sender_the_answer() {
    let world = World::new().await;
    let body = "x".repeat(200_000);
    for _ in 0..20 {
        let answer = world.tls(Some("reconciler")).await.post("/es/stop", None, &body).await;
        assert_eq!(answer.problem(), (413, "body_too_large".into()));
    }
}

#[tokio::test]
async fn places_are_given_back() {
    let limits = Limits { connections: 4, ..Limits::default() };
    let world = World::with(limits, |_| ()).await;
    for _ in 0..10 {
        let mut client = world.unix().await;
        assert_eq!(client.get("/livez", None).await.status, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn old_connections_are_closed_in_order() {
    let limits = Limits { max_age: Duration::from_secs(5), ..Limits::default() };
    let world = World::with(limits, |_| ()).await;
    let mut client = world.unix().await;
    assert_eq!(client.get("/livez", None).await.status, 200);
    tokio::time::sleep(Duration::from_secs(6)).await;
    eventually(async || client.send("GET", "/livez", None, "").await.is_err()).await;
}

#[tokio::test]
async fn a_client_that_does_not_read_cannot_hold_up_the_end() {
    let limits = Limits { drain: Duration::from_millis(100), ..Limits::default() };
    let mut world = World::with(limits, |_| ()).await;
    let mut stream = UnixStream::connect(world.path("socket")).await.unwrap();
    // Complete headers, but no body: a request that is open when the manager ends.
    let head = b"POST /es/stop HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n{";
    stream.write_all(head).await.unwrap();
    world.end().await.unwrap();
}

/// Uses all permissions to wait of a listener by `open`ing one connection after the other.
async fn crowd(
    world: &World,
    limit: usize,
    mut open: impl AsyncFnMut() -> Client,
) -> Vec<tokio::task::JoinHandle<hyper::Result<Response>>> {
    let target = format!("/es/status?after={}&timeout=60s", running().cursor.0);
    let mut crowd = Vec::new();
    for number in 1..=limit {
        let (mut client, target) = (open().await, target.clone());
        crowd.push(tokio::spawn(async move {
            client.send("GET", &target, Some(&token("es:read")), "").await
        }));
        // Each waiting request has called the readiness probe.
        eventually(async || world.script.lock().unwrap().probes >= number).await;
    }
    crowd
}

#[tokio::test]
async fn those_who_wait_do_not_keep_out_those_who_act() {
    for local in [true, false] {
        let world = World::new().await;
        let open = async || if local { world.unix().await } else { world.tls(None).await };
        let crowd = crowd(&world, Limits::default().waiting, open).await;

        let token = Some(token("es:control"));
        let token = token.as_deref();
        let target = format!("/es/status?after={}&timeout=60s", running().cursor.0);
        let answer = open().await.get(&target, token).await;
        assert_eq!(answer.problem(), (503, "too_many_waiting".into()));
        assert_eq!(answer.header("retry-after"), "1");
        // A request that need not wait is answered, and a stop is accepted, although it cannot
        // wait.
        assert_eq!(open().await.get("/es/status?after=other", token).await.status, 200);
        assert_eq!(open().await.get("/es/status", token).await.status, 200);
        assert_eq!(open().await.post("/es/stop?wait=60s", token, "").await.status, 202);

        world.publish(stopped());
        for watcher in crowd {
            assert_eq!(watcher.await.unwrap().unwrap().status, 200);
        }
        // The permissions to wait are free again.
        let target = format!("/es/status?after={}&timeout=1ms", stopped().cursor.0);
        assert_eq!(open().await.get(&target, token).await.status, 204);
    }
}

#[test]
fn connections_leave_descriptors_for_everything_else() {
    let usual = Limits::default().within(1024);
    assert_eq!(usual, Limits::default());
    for descriptors in [40, 64, 100, 256, 512] {
        let limits = Limits::default().within(descriptors);
        let capacity = limits.capacity();
        assert!(2 * capacity.descriptors() * 2 <= descriptors, "{descriptors}: {limits:?}");
        assert!(limits.waiting + capacity.unproven() < limits.connections, "{limits:?}");
    }
}
