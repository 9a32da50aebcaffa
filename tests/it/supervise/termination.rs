//! TERM to the manager: the same steps as a stop, then its own end with the right code.

use std::os::unix::net::UnixStream;

use nix::sys::signal::Signal;

use super::pod::Pod;
use super::processes::{eventually, is_alive};
use crate::support::isolated::can_run;
use crate::support::programs::send;
use crate::support::skip;

#[test] // proves STOP-34
fn it_ends_the_engine_and_passes_its_code_on() {
    for (options, code) in
        [(&[][..], 143), (&["--success-exit", "143"], 0), (&["--success-exit", "7"], 143)]
    {
        let pod = Pod::new();
        let mut manager = pod.start(options, &["sleep", "600"]);
        manager.until_state("running");
        let engine = manager.engine();
        manager.signal(Signal::SIGTERM);
        assert_eq!(manager.ended(), code);
        assert!(!is_alive(engine) && UnixStream::connect(pod.socket()).is_err());
        let next = pod.start(options, &["sleep", "600"]);
        let status = next.until_state("running");
        assert_eq!(status["desired"], "running", "TERM is no request to stay stopped");
        assert_eq!(status["last_exit"]["reason"], "stopped");
    }
}

#[test]
fn a_clean_stop_by_the_engines_own_code_is_passed_on() {
    let pod = Pod::new();
    let script = "trap 'exit 42' TERM; touch set; while :; do sleep 0.01; done";
    let mut manager = pod.start::<&str>(&[], &["sh", "-c", script]);
    eventually("the trap", || pod.path("set").exists().then_some(()));
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.ended(), 42);
}

#[test] // proves STOP-34
fn when_the_engine_is_stopped_already_it_ends_with_0() {
    let pod = Pod::new();
    let mut manager = pod.start_sleeper();
    manager.until_state("running");
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.ended(), 0);

    let mut next = pod.start_sleeper();
    let status = next.until_state("stopped");
    assert_eq!((&status["desired"], &status["starts"]), (&"stopped".into(), &0.into()));
    assert_eq!(status["reason"]["code"], "stopped_by_request");
    next.signal(Signal::SIGINT);
    assert_eq!(next.ended(), 0, "INT without an engine means the manager");
}

#[test]
fn a_killed_engine_stays_137_whatever_counts_as_success() {
    let pod = Pod::new();
    let mut manager = pod.start_deaf(&["--termination-grace", "50ms", "--success-exit", "137"]);
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.ended(), 137);
}

#[test] // proves STOP-34
fn without_a_bound_a_second_term_shortens_the_wait() {
    let pod = Pod::new();
    let mut manager = pod.start_deaf(&["--tree-grace", "10ms"]);
    let engine = manager.engine();
    manager.signal(Signal::SIGTERM);
    manager.until_state("stopping");
    let refused = manager.post("/es/start", "{}");
    assert_eq!(refused.problem(), "terminating", "{refused:?}");
    assert!(is_alive(engine));
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.ended(), 137);
    assert!(!is_alive(engine));
}

#[test]
fn it_beats_a_start_that_is_not_ready_and_a_stop_under_way() {
    let pod = Pod::new();
    pod.gate.set(false);
    let mut manager = pod.start_sleeper();
    manager.until_state("starting");
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.ended(), 143);

    pod.gate.set(true);
    let mut manager = pod.start_deaf(&["--grace", "300s", "--termination-grace", "10ms"]);
    assert_eq!(manager.post("/es/stop", "{}").code, 202);
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.ended(), 137);
    let next = pod.start_sleeper();
    next.until("stopped as asked", |status| {
        status["state"] == "stopped" && status["desired"] == "stopped"
    });
}

#[test]
fn whoever_waits_for_a_stop_is_answered_before_the_manager_ends() {
    let pod = Pod::new();
    let mut manager = pod.start_deaf(&["--grace", "300s", "--termination-grace", "10ms"]);
    let answer = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| manager.post("/es/stop?wait=30s", "{}"));
        manager.until_state("stopping");
        manager.signal(Signal::SIGTERM);
        waiting.join().unwrap()
    });
    assert_eq!((answer.code, &answer.body["state"]), (200, &"stopped".into()), "{answer:?}");
    assert_eq!(manager.ended(), 137);
}

#[test]
fn other_signals_go_to_the_engine() {
    let pod = Pod::new();
    let manager = pod.start(&["--on-exit", "hold"], &["sleep", "600"]);
    for signal in [Signal::SIGUSR1, Signal::SIGHUP, Signal::SIGINT] {
        manager.until_state("running");
        // Not before the engine's exec: before that, a shell might handle the signal.
        manager.signal(signal);
        let status = manager.until_state("failed");
        assert_eq!(status["last_exit"]["signal"], signal as i32);
        assert_eq!(manager.post("/es/start?wait=20s", "{}").code, 200);
    }
}

#[test]
fn the_cause_is_in_the_termination_log() {
    let name = "supervise::termination::the_cause_is_in_the_termination_log";
    let pod = Pod::new();
    let namespace = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"];
    if let Err(reason) = can_run(&namespace[..2]) {
        return skip(name, &reason);
    }
    // A /dev for this test, with the files of a container's /dev.
    let script = "mkdir dev && mount -t tmpfs tmpfs dev && touch dev/termination-log &&
        cp -a /dev/null /dev/urandom dev && mount --bind dev /dev || exit 99
        \"$@\"; code=$?; cat /dev/termination-log >message; exit $code";
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_stayput"), "run"]);
    command.arg("--on-exit=exit").args(["--", "sh", "-c", "exit 78"]);
    let mut manager = pod.spawn(command.current_dir(pod.directory()));
    match manager.ended() {
        99 => skip(name, "cannot mount a /dev of its own"),
        code => assert_eq!(code, 78),
    }
    let message = pod.read("message");
    assert!(message.starts_with("stayput: ") && message.contains("code 78"), "{message:?}");
}

#[test]
fn an_engine_killed_by_somebody_else_is_137_too() {
    let pod = Pod::new();
    let mut manager = pod.start_sleeper();
    manager.until_state("running");
    send(manager.engine(), Signal::SIGKILL);
    assert_eq!(manager.ended(), 137);
}
