//! Stopped means that all processes of the tree are gone, and no others.

use std::time::Instant;

use super::pod::Pod;
use super::processes::{descendants, is_alive};
use crate::support::programs::program;
use crate::support::standin::StandIn;

/// The stand-in engine under a manager of `pod`.
fn engine(standin: &StandIn) -> [String; 3] {
    let program = program("standin-engine").display().to_string();
    [program, "--config".to_owned(), standin.config().display().to_string()]
}

#[test]
fn two_hundred_children_in_their_own_sessions_that_ignore_term_are_gone_when_it_says_stopped() {
    let pod = Pod::new();
    pod.gate.set(false);
    let standin = StandIn::new("standin.setsid_children: 200\nstandin.ignore_term: true");
    let engine = engine(&standin);
    let manager = pod.start(&["--grace", "1s"], &engine.each_ref().map(String::as_str));
    super::processes::eventually("200 children", || {
        (descendants(manager.pid()).len() >= 201).then_some(())
    });
    pod.gate.set(true);
    manager.until_state("running");
    let tree = descendants(manager.pid());
    let began = Instant::now();
    let stopped = manager.post("/es/stop?wait=30s", "{}");
    let took = began.elapsed();
    assert_eq!((stopped.code, &stopped.body["state"]), (200, &"stopped".into()), "{stopped:?}");
    assert!(!tree.iter().any(|&pid| is_alive(pid)), "some of the tree live on");
    let exit = &stopped.body["last_exit"];
    assert_eq!((&exit["signal"], &exit["reason"]), (&9.into(), &"killed".into()));
    // The limit, grace + 1 s, is for an idle machine; the benchmark checks it.
    println!("{} processes gone after {took:?}, grace 1 s", tree.len());
}

#[test] // proves STOP-1
fn launcher_and_server_both_end_and_a_helper_that_stays_is_reported() {
    let pod = Pod::new();
    let standin = StandIn::new("standin.launcher: true\nstandin.helper: true");
    let engine = engine(&standin);
    pod.gate.set(false);
    let manager = pod.start(&["--tree-grace", "100ms"], &engine.each_ref().map(String::as_str));
    super::processes::eventually("launcher, server and helper", || {
        (descendants(manager.pid()).len() == 3).then_some(())
    });
    pod.gate.set(true);
    manager.until_state("running");
    let tree = descendants(manager.pid());
    let stopped = manager.post("/es/stop?wait=30s", "{}");
    assert_eq!(stopped.code, 200, "{stopped:?}");
    assert!(!tree.iter().any(|&pid| is_alive(pid)));
    let exit = &stopped.body["last_exit"];
    assert_eq!(exit["reason"], "stopped", "{exit}");
    let stragglers = exit["stragglers"].as_array().unwrap();
    assert_eq!(stragglers.len(), 1, "{exit}");
    let command = stragglers[0]["command"].as_str().unwrap();
    // The kernel's name of a process that did not let itself be read in time.
    assert!(command.contains("agent") || command == "[standin-engine]", "{exit}");
}

#[test]
fn killing_the_launcher_alone_leaves_no_server_behind() {
    let pod = Pod::new();
    let standin = StandIn::new("standin.launcher: true");
    let engine = engine(&standin);
    pod.gate.set(false);
    let manager = pod.start(&["--on-exit", "hold"], &engine.each_ref().map(String::as_str));
    super::processes::eventually("launcher and server", || {
        (descendants(manager.pid()).len() == 2).then_some(())
    });
    pod.gate.set(true);
    manager.until_state("running");
    let tree = descendants(manager.pid());
    crate::support::programs::send(manager.engine(), nix::sys::signal::Signal::SIGKILL);
    let status = manager.until_state("failed");
    assert!(!tree.iter().any(|&pid| is_alive(pid)), "failed means the tree is empty: {status}");
    assert_eq!(status["last_exit"]["reason"], "killed");
    assert_eq!(manager.post("/es/start?wait=30s", "{}").code, 200);
}
