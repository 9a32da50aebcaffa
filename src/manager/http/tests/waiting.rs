//! Long polls and waits are ended by the change, not by a clock.

use super::world::{World, running, stopped, token};
use crate::http::Limits;
use stayput_api::Accepted;
use stayput_api::{Code, Cursor, LastRequest, State, Status};

fn starting(sequence: u64) -> Status {
    let status = running();
    let last = status.last_request.clone().map(|last| LastRequest { sequence, ..last });
    Status {
        state: State::Starting,
        ready: None,
        cursor: Cursor("boot:20".into()),
        last_request: last,
        ..status
    }
}

#[tokio::test]
async fn a_long_poll_is_answered_by_the_next_change() {
    let world = World::new().await;
    let mut client = world.tls(None).await;
    let token = token("es:read");
    let target = format!("/es/status?after={}&timeout=60s", running().cursor.0);
    let (answer, ()) = tokio::join!(client.get(&target, Some(&token)), async {
        // The poll has begun when it has asked the readiness probe.
        super::world::eventually(async || world.script.lock().unwrap().probes > 0).await;
        world.publish(stopped());
    });
    assert_eq!((answer.status.as_u16(), answer.json()["state"].as_str()), (200, Some("stopped")));
}

#[tokio::test]
async fn another_cursor_is_answered_at_once() {
    let world = World::new().await;
    let mut client = world.unix().await;
    for cursor in ["otherboot:17", "", "6f1c9b0a2d7e4c55%3A16"] {
        let answer = client.get(&format!("/es/status?after={cursor}&timeout=5m"), None).await;
        assert_eq!(answer.status, 200, "{cursor:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_poll_without_news_ends_with_no_content() {
    let world = World::new().await;
    let mut client = world.unix().await;
    let begin = tokio::time::Instant::now();
    let cursor = running().cursor.0;
    let answer = client.get(&format!("/es/status?after={cursor}"), None).await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (204, 0));
    assert_eq!(begin.elapsed().as_secs(), 30);
    // However long the client asks to wait.
    let begin = tokio::time::Instant::now();
    let answer = client.get(&format!("/es/status?after={cursor}&timeout=1h"), None).await;
    assert_eq!((answer.status.as_u16(), begin.elapsed().as_secs()), (204, 5 * 60));
}

#[tokio::test]
async fn a_hanging_supervisor_does_not_keep_a_change_from_a_poll() {
    let world = World::new().await;
    world.script.lock().unwrap().hangs = true;
    let mut client = world.unix().await;
    let target = format!("/es/status?after={}&timeout=60s", running().cursor.0);
    let (answer, ()) = tokio::join!(client.get(&target, None), async {
        tokio::task::yield_now().await;
        world.publish(stopped());
    });
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_stop_is_waited_for() {
    let world = World::new().await;
    let mut client = world.unix().await;
    let (answer, ()) = tokio::join!(client.post("/es/stop?wait=60s", None, ""), async {
        super::world::eventually(async || !world.script.lock().unwrap().seen.is_empty()).await;
        let status = Status { state: State::Stopping, ..stopped() };
        world.publish(status);
        tokio::task::yield_now().await;
        world.publish(stopped());
    });
    assert_eq!((answer.status.as_u16(), answer.json()["state"].as_str()), (200, Some("stopped")));
}

#[tokio::test]
async fn a_start_is_waited_for_and_its_failure_told() {
    let world = World::new().await;
    world.publish(starting(42));
    let mut client = world.unix().await;
    world.answer(Ok(Accepted { sequence: 42, done: false }));
    let (answer, ()) = tokio::join!(client.post("/es/start?wait=60s", None, ""), async {
        super::world::eventually(async || !world.script.lock().unwrap().seen.is_empty()).await;
        world.publish(Status { state: State::Failed, ..starting(42) });
    });
    assert_eq!(answer.problem(), (503, "start_failed".into()));
    assert_eq!(answer.json()["current"]["state"], "failed");

    world.answer(Ok(Accepted { sequence: 42, done: false }));
    world.publish(running());
    let body =
        r#"{"checksum":"sha256:0000000000000000000000000000000000000000000000000000000000000000"}"#;
    let answer = client.post("/es/start?wait=60s", None, body).await;
    assert_eq!(answer.problem(), (409, "wrong_config".into()));
}

#[tokio::test]
async fn whoever_is_overtaken_is_told() {
    let world = World::new().await;
    world.publish(starting(42));
    let mut client = world.unix().await;
    world.answer(Ok(Accepted { sequence: 42, done: false }));
    let (answer, ()) = tokio::join!(client.post("/es/start?wait=60s", None, ""), async {
        super::world::eventually(async || !world.script.lock().unwrap().seen.is_empty()).await;
        world.publish(stopped());
    });
    let code = Code::Superseded;
    assert_eq!(answer.problem(), (code.http_status(), code.as_str().to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_too_short_is_answered_with_accepted() {
    let world = World::new().await;
    let mut client = world.unix().await;
    let begin = tokio::time::Instant::now();
    assert_eq!(client.post("/es/stop?wait=7s", None, "").await.status, 202);
    assert_eq!(begin.elapsed().as_secs(), 7);
    assert_eq!(client.post("/es/stop?wait=7", None, "").await.status, 202);
    assert_eq!(begin.elapsed().as_secs(), 14, "a bare number is seconds");
}

#[tokio::test(start_paused = true)] // proves ACCESS-21
async fn a_wait_that_would_be_cut_short_is_refused_before_anything_is_done() {
    let world = World::new().await;
    let mut client = world.unix().await;
    let refused = client.post("/es/stop?wait=1h", None, "").await;
    assert_eq!(refused.problem(), (400, "invalid_query".into()));
    assert!(refused.json()["detail"].as_str().unwrap().contains("longer than 5m"), "{refused:?}");
    assert!(world.script.lock().unwrap().seen.is_empty());
    let begin = tokio::time::Instant::now();
    let waited = client.post("/es/stop?wait=5m", None, "").await;
    assert_eq!((waited.status.as_u16(), begin.elapsed().as_secs()), (202, 300));
    assert_eq!(waited.header("stayput-wait-cut-short"), "");
}

#[tokio::test(start_paused = true)] // proves ACCESS-21
async fn an_accepted_request_that_cannot_wait_says_so() {
    let limits = Limits { waiting: 0, ..Limits::default() };
    let world = World::with(limits, |_| ()).await;
    let begin = tokio::time::Instant::now();
    let answer = world.unix().await.post("/es/stop?wait=60s", None, "").await;
    assert_eq!((answer.status.as_u16(), begin.elapsed().as_secs()), (202, 0));
    assert_eq!(answer.header("stayput-wait-cut-short"), "too many requests wait already");
    assert_eq!(answer.header("retry-after"), "1");
}

#[tokio::test]
async fn the_end_of_the_manager_answers_those_who_wait() {
    let mut world = World::new().await;
    let (mut poller, mut waiter) = (world.unix().await, world.unix().await);
    let target = format!("/es/status?after={}&timeout=60s", running().cursor.0);
    let script = world.script.clone();
    let (poll, wait, ()) = tokio::join!(
        poller.get(&target, None),
        waiter.post("/es/stop?wait=60s", None, ""),
        async {
            super::world::eventually(async || {
                let script = script.lock().unwrap();
                script.probes > 0 && !script.seen.is_empty()
            })
            .await;
            world.end().await.unwrap();
        }
    );
    assert_eq!((poll.status.as_u16(), wait.status.as_u16()), (204, 202));
    assert_eq!(wait.header("stayput-wait-cut-short"), "the manager is ending");
    let refused = tokio::net::UnixStream::connect(world.path("socket")).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_stop_that_ends_the_manager_is_still_told_as_done() {
    let mut world = World::new().await;
    let mut client = world.unix().await;
    let script = world.script.clone();
    let (answer, ()) = tokio::join!(client.post("/es/stop?wait=60s", None, ""), async {
        super::world::eventually(async || !script.lock().unwrap().seen.is_empty()).await;
        world.publish(stopped());
        world.end().await.unwrap();
    });
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn whoever_hangs_up_while_waiting_lets_others_wait() {
    let limits = Limits { waiting: 1, ..Limits::default() };
    let world = World::with(limits, |_| ()).await;
    let target = format!("/es/status?after={}&timeout=1ms", super::world::running().cursor.0);
    for asked in 1..=3 {
        let mut client = world.unix().await;
        let sent = async || world.script.lock().unwrap().seen.len() == asked;
        tokio::select! {
            answer = client.post("/es/stop?wait=60s", None, "") => panic!("{answer:?}"),
            () = super::world::eventually(sent) => {}
        }
        drop(client);
        let may_wait = async || world.unix().await.get(&target, None).await.status == 204;
        super::world::eventually(may_wait).await;
    }
}
