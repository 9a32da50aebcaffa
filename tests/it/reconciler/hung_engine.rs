//! Every engine that runs hangs while another one is stopped by us.

use std::time::{Duration, SystemTime};

use nix::sys::signal::Signal;
use stayput_restart::Outcome;

use super::fixture::{Fixture, NODES};
use super::objects::eventually;
use super::program::Program;
use crate::support::programs::send;

/// A stopped engine is started without an answer of the others.
#[tokio::test] // proves RESTART-38
async fn an_engine_that_was_stopped_is_started_before_the_others_answer() {
    let fixture = Fixture::new("standin.stop_delay_ms: 1500").await;
    let (_directory, kubeconfig) = fixture.kubeconfig();
    let reconciler = Program::start(&kubeconfig, "first");
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    let stopping = fixture.until_stopping().await;
    let processes = fixture.processes();
    let others = NODES.into_iter().filter(|name| *name != stopping);
    let engines: Vec<u32> = others.map(|name| processes[name].1.expect("an engine")).collect();
    engines.iter().for_each(|engine| send(*engine, Signal::SIGSTOP));
    eventually("it is started again", async || {
        (fixture.status(stopping).await.starts == 2).then_some(())
    })
    .await;
    let (_, metrics) = reconciler.get("/metrics").await.expect("it answers");
    engines.iter().for_each(|engine| send(*engine, Signal::SIGCONT));
    let mut lines = metrics.lines();
    let failed = lines.find(|line| {
        line.starts_with("stayput_requests_total{to=\"engine\"") && !line.contains("outcome=\"ok\"")
    });
    assert_eq!(failed, None, "no request to an engine was waited for");

    let entry = fixture.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    for name in NODES {
        assert_eq!(fixture.starts(name).await, 2, "{name}");
    }
}

/// A start is sent when its manager says that the engine is stopped, however long the others take for
/// their answers: they are not waited for then, not even the second that they get while it stops.
#[tokio::test] // proves RESTART-38
async fn a_start_does_not_wait_for_the_end_of_a_look() {
    let mut seen = Vec::new();
    // One restart is enough, unless this test or a program of it was held up in two of three turns.
    for _ in 0..4 {
        let mut waits = waits_of_a_restart().await;
        waits.sort();
        let middle = waits.len().saturating_sub(1) / 2;
        if waits.len() >= 2 && waits[middle] < Duration::from_secs(1) {
            return;
        }
        seen.push(waits);
    }
    panic!("{seen:?}");
}

/// From each engine's end until its next start, where the others hung all that time.
async fn waits_of_a_restart() -> Vec<Duration> {
    let fixture = Fixture::new("standin.stop_delay_ms: 400").await;
    let (_directory, kubeconfig) = fixture.kubeconfig();
    let _reconciler = Program::start(&kubeconfig, "first");
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    let (mut stopped_before, mut waits) = (Vec::new(), Vec::new());
    for _ in NODES {
        let stopping = fixture.until_stopping_after(&stopped_before).await;
        stopped_before.push(stopping);
        let processes = fixture.processes();
        let others = NODES.into_iter().filter(|name| *name != stopping);
        let engines: Vec<u32> = others.map(|name| processes[name].1.expect("an engine")).collect();
        engines.iter().for_each(|engine| send(*engine, Signal::SIGSTOP));
        let hang_since = SystemTime::now();
        let status = eventually("it is started again", async || {
            Some(fixture.status(stopping).await).filter(|status| status.starts == 2)
        })
        .await;
        engines.iter().for_each(|engine| send(*engine, Signal::SIGCONT));
        let at = |text: &str| humantime::parse_rfc3339(text).expect("a moment");
        let stopped = at(&status.last_exit.expect("it was stopped").at);
        let started = at(&status.run.expect("it runs").started_at);
        // If we were held up, the others may have answered.
        if hang_since < stopped {
            waits.push(started.duration_since(stopped).expect("it is later"));
        }
    }
    fixture.until_over("r1").await;
    waits
}
