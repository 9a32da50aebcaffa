//! Four hundred peers without credentials do not keep out probes and callers.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{sleep, timeout};

use super::world::{Client, World, eventually, running, stopped, token};
use crate::http::Limits;

/// More than the manager has places for.
const CROWD: usize = 400;
/// What the kubelet does if a probe says nothing else: an answer within a second counts, and the
/// third failure in a row has the container killed.
const KUBELET_TIMEOUT: Duration = Duration::from_secs(1);
const KUBELET_FAILURES: usize = 3;

/// The beginning of a TLS record with a hello of 8 KiB.
const HALF_A_HELLO: &[u8] = &[0x16, 0x03, 0x01, 0x20, 0x04, 0x01, 0x00, 0x20, 0x00];

/// Whether the kubelet leaves the container alone.
async fn survives(mut probe: impl AsyncFnMut() -> u16) -> bool {
    for _ in 0..KUBELET_FAILURES {
        if timeout(KUBELET_TIMEOUT, probe()).await == Ok(200) {
            return true;
        }
    }
    false
}

/// Probes and authorised calls are answered over TLS and over the socket.
async fn assert_answers(world: &World) {
    for path in ["/livez", "/readyz"] {
        let probe = async || world.tls(None).await.get(path, None).await.status.as_u16();
        assert!(survives(probe).await, "{path} over TLS");
    }
    let key = Some(token("es:control"));
    let key = key.as_deref();
    let status = async || world.tls(None).await.get("/es/status", key).await.status.as_u16();
    assert!(survives(status).await, "a caller with a token");
    let stop = world.tls(Some("reconciler")).await.post("/es/stop", None, "").await;
    assert_eq!(stop.status, 202);
    let local = async || world.unix().await.get("/livez", None).await.status.as_u16();
    assert!(survives(local).await, "/livez over the socket");
}

#[tokio::test] // proves ACCESS-7
async fn idle_connections() {
    let world = World::new().await;
    let (mut crowd, mut local) = (Vec::new(), Vec::new());
    for _ in 0..CROWD {
        crowd.push(TcpStream::connect(world.address).await.unwrap());
        local.push(UnixStream::connect(world.path("socket")).await.unwrap());
    }
    assert_answers(&world).await;
}

#[tokio::test] // proves ACCESS-7
async fn slow_handshakes() {
    let world = World::new().await;
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        stream.write_all(HALF_A_HELLO).await.unwrap();
        crowd.push(stream);
    }
    assert_answers(&world).await;
}

#[tokio::test] // proves ACCESS-7
async fn handshakes_that_arrive_byte_by_byte() {
    let world = World::new().await;
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        crowd.push(TcpStream::connect(world.address).await.unwrap());
    }
    // The crowd sends on, while the probes are answered.
    let trickle = async {
        for byte in HALF_A_HELLO.iter().chain(std::iter::repeat(&0)) {
            for stream in &mut crowd {
                // It fails for those that were evicted.
                let _ = stream.write_all(&[*byte]).await;
            }
            // A crowd is on other machines: it does not take the time of this one.
            sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        () = trickle => {}
        () = assert_answers(&world) => {}
    }
}

#[tokio::test] // proves ACCESS-7
async fn connections_that_were_refused_and_stay() {
    let world = World::new().await;
    let mut crowd: Vec<Client> = Vec::new();
    for _ in 0..CROWD {
        let mut client = world.tls(None).await;
        assert_eq!(client.get("/es/status", None).await.status, 401);
        crowd.push(client);
    }
    assert_answers(&world).await;
}

#[tokio::test] // proves ACCESS-7
async fn heads_that_never_end() {
    let world = World::new().await;
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        let mut stream = world.tls_stream(None).await.unwrap();
        stream.write_all(b"GET /livez HTTP/1.1\r\n").await.unwrap();
        crowd.push(stream);
    }
    assert_answers(&world).await;
}

#[tokio::test] // proves ACCESS-7
async fn a_long_poll_with_credentials_outlives_the_crowd() {
    let world = World::new().await;
    let target = format!("/es/status?after={}&timeout=60s", running().cursor.0);
    let mut client = world.tls(None).await;
    let poll =
        tokio::spawn(async move { client.get(&target, Some(&token("es:read"))).await.status });
    eventually(async || world.script.lock().unwrap().probes == 1).await;
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        crowd.push(TcpStream::connect(world.address).await.unwrap());
    }
    assert_answers(&world).await;
    world.publish(stopped());
    assert_eq!(poll.await.unwrap(), 200);
}

#[tokio::test]
async fn the_oldest_lose_their_places_first() {
    // Nothing but an eviction ends a connection here.
    let limits = Limits { handshake: Duration::from_secs(3600), ..Limits::default() };
    let world = World::with(limits, |_| ()).await;
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        crowd.push(TcpStream::connect(world.address).await.unwrap());
    }
    let mut byte = [0];
    let ended = timeout(Duration::from_secs(20), crowd[0].read(&mut byte)).await;
    assert!(!ended.expect("the oldest must go").is_ok_and(|count| count > 0));
    let youngest = crowd.last().unwrap();
    assert_eq!(
        youngest.try_read(&mut byte).unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock,
        "the youngest stays"
    );
}
