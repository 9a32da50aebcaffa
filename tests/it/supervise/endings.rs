//! The engine ends by itself: `--on-exit`, and a held start.

use std::os::unix::net::UnixStream;
use std::process::Command;

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::pod::Pod;
use super::processes::{eventually, is_alive, name};
use crate::support::isolated::{can_run, test_name};
use crate::support::programs::send;
use crate::support::skip;

#[test] // proves STOP-12
fn by_default_the_manager_ends_with_the_engines_code() {
    for code in [0, 7, 78, 137] {
        let pod = Pod::new();
        let mut manager = pod.start_obedient(&[]);
        manager.until_state("running");
        pod.exit(code);
        assert_eq!(manager.ended(), code);
        assert!(UnixStream::connect(pod.socket()).is_err(), "nobody serves its socket");
    }
    let pod = Pod::new();
    let mut manager = pod.start_sleeper();
    manager.until_state("running");
    send(manager.engine(), Signal::SIGSEGV);
    assert_eq!(manager.ended(), 139);
}

#[test]
fn an_engine_that_ends_at_boot_before_it_was_ready_ends_the_manager_too() {
    let pod = Pod::new();
    pod.gate.set(false);
    let mut manager = pod.start_obedient(&[]);
    manager.until_state("starting");
    pod.exit(78);
    assert_eq!(manager.ended(), 78);
}

#[test] // proves STOP-12
fn with_restart_it_is_started_again_after_a_pause() {
    let pod = Pod::new();
    let manager = pod.start_obedient(&["--on-exit", "restart"]);
    manager.until_state("running");
    pod.exit(3);
    let status = manager.until("it has ended", |status| status["last_exit"]["code"] == 3);
    assert_eq!(status["last_exit"]["reason"], "exited");
    // The pause is a second, which a busy machine may miss.
    if status["starts"] == 1 {
        assert_eq!(
            (&status["state"], &status["reason"]["code"]),
            (&"backoff".into(), &"backoff".into())
        );
    }
    let again = manager
        .until("running again", |status| status["state"] == "running" && status["starts"] == 2);
    assert_eq!(again["desired"], "running");
    pod.exit(4);
    manager.until("it has ended", |status| status["last_exit"]["code"] == 4);
    let stopped = manager.post("/es/stop?wait=20s", "{}");
    assert_eq!(
        (stopped.code, &stopped.body["state"]),
        (200, &"stopped".into()),
        "no timer is left"
    );
    if stopped.body["starts"] == 2 {
        assert_eq!(stopped.body["last_exit"]["code"], 4);
    }
}

#[test] // proves STOP-12
fn with_hold_it_waits_for_a_request() {
    let pod = Pod::new();
    let mut manager = pod.start_obedient(&["--on-exit", "hold"]);
    manager.until_state("running");
    send(manager.engine(), Signal::SIGKILL);
    let status = manager.until_state("failed");
    assert_eq!(status["reason"]["code"], "ended_by_itself");
    assert_eq!(
        (&status["last_exit"]["signal"], &status["last_exit"]["reason"]),
        (&9.into(), &"killed".into())
    );
    assert_eq!((manager.get("/livez").code, manager.get("/readyz").code), (200, 503));

    assert_eq!(manager.post("/es/start?wait=20s", "{}").code, 200);
    pod.exit(5);
    manager.until_state("failed");
    let stopped = manager.post("/es/stop", "{}");
    assert_eq!((stopped.code, &stopped.body["state"]), (200, &"stopped".into()));
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.ended(), 0);
}

#[test]
fn a_start_that_comes_to_nothing_is_held_whatever_is_set() {
    let pod = Pod::new();
    for on_exit in ["exit", "restart", "hold"] {
        pod.gate.set(true);
        let mut manager = pod.start_obedient(&["--on-exit", on_exit]);
        manager.until_state("running");
        assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
        pod.gate.set(false);
        assert_eq!(manager.post("/es/start", "{}").code, 202);
        pod.exit(78);
        let status = manager.until_state("failed");
        assert_eq!(
            (&status["reason"]["code"], &status["last_exit"]["code"]),
            (&"start_failed".into(), &78.into())
        );
        assert_eq!(status["last_exit"]["reason"], "exited");
        assert!(status["reason"]["message"].as_str().unwrap().contains("code 78"), "{status}");

        // A new container does not try this start again either.
        let runs = pod.runs();
        manager.signal(Signal::SIGTERM);
        assert_eq!(manager.ended(), 78, "held, so not clean");
        let mut manager = pod.start_obedient(&["--on-exit", on_exit]);
        let held = manager.until_state("failed");
        assert_eq!(
            (&held["reason"]["code"], &held["last_exit"]["code"]),
            (&"start_failed".into(), &78.into())
        );
        assert_eq!(pod.runs(), runs);

        pod.gate.set(true);
        assert_eq!(manager.post("/es/start?wait=20s", "{}").code, 200);
        manager.signal(Signal::SIGTERM);
        assert_eq!(manager.ended(), 143);
    }
}

#[test]
fn whoever_waits_for_that_start_is_told() {
    let pod = Pod::new();
    let manager = pod.start_obedient(&[]);
    manager.until_state("running");
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    pod.gate.set(false);
    let answer = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| manager.post("/es/start?wait=30s", "{}"));
        manager.until_state("starting");
        pod.exit(78);
        waiting.join().unwrap()
    });
    assert_eq!(answer.problem(), "start_failed", "{answer:?}");
    assert!(answer.detail().contains("code 78"), "{answer:?}");
    assert_eq!(answer.body["current"]["last_exit"]["code"], 78);
}

#[test]
fn what_the_engine_leaves_behind_is_ended_and_reported() {
    let pod = Pod::new();
    let script = "setsid sleep 600 & echo $! >left; read line <order; exit 9";
    nix::unistd::mkfifo(&pod.path("order"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let manager = pod.start(&["--on-exit", "hold"], &["sh", "-c", script]);
    manager.until_state("running");
    let left = eventually("the child", || pod.read("left").trim().parse::<u32>().ok());
    eventually("the child's exec", || (name(left) == "sleep").then_some(()));
    pod.exit(0);
    let status = manager.until_state("failed");
    assert!(!is_alive(left));
    let exit = &status["last_exit"];
    assert_eq!((&exit["code"], &exit["reason"]), (&9.into(), &"exited".into()));
    assert_eq!(exit["stragglers"].as_array().map(Vec::len), Some(1), "{exit}");
    assert!(exit["stragglers"][0]["command"].as_str().unwrap().contains("sleep"), "{exit}");
}

#[test] // proves STOP-13
fn an_orphan_that_gets_the_leaders_pid_does_not_change_how_the_engine_ended() {
    const NAMESPACE: [&str; 5] = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    const NEXT_PID: &str = "/proc/sys/kernel/ns_last_pid";
    let name = test_name!(an_orphan_that_gets_the_leaders_pid_does_not_change_how_the_engine_ended);
    let may_choose = format!("echo 100 >{NEXT_PID}");
    if let Err(reason) = can_run(&[&NAMESPACE[..], &["sh", "-c", &may_choose]].concat()) {
        return skip(name, &reason);
    }
    let pod = Pod::new();
    // What the leader leaves behind ends when an orphan with the leader's pid was reaped. It has a session
    // of its own: a pid is not used again as long as a session has it. A thread of the manager may get the
    // pid that was meant for the orphan: then the next orphan gets it, when that thread has ended.
    let left_behind = format!(
        "trap '' TERM
         echo >waits
         while [ -e /proc/$1 ]; do :; done
         until [ \"$again\" = $1 ]; do
             (echo $(($1 - 1)) >{NEXT_PID}; (exit 9) & echo $! >again)
             read again <again
         done
         while [ -e /proc/$1 ]; do :; done"
    );
    pod.write("left-behind", &left_behind);
    let script = "setsid sh left-behind $$ & echo $$ >leader; read code <order; exit 3";
    mkfifo(&pod.path("order"), Mode::S_IRWXU).expect("a fifo");
    let options = ["--on-exit", "hold", "--tree-grace", "60s"];
    let plain = pod.command(&options, &["sh", "-c", script]);
    let mut command = Command::new(NAMESPACE[0]);
    command.args(&NAMESPACE[1..]).arg(plain.get_program()).args(plain.get_args());
    let manager = pod.spawn(command.current_dir(pod.directory()));
    manager.until_state("running");
    eventually("what is left behind", || pod.path("waits").exists().then_some(()));
    pod.exit(0);
    let status = manager.until_state("failed");
    assert_eq!(pod.read("again"), pod.read("leader"), "{}", manager.log());
    assert_eq!(status["last_exit"]["code"], 3, "{status:#}");
}

#[test] // proves CONFIG-7
fn the_message_of_a_start_that_a_half_written_keystore_ends_names_the_file() {
    let pod = Pod::new();
    pod.gate.set(false);
    let manager = pod.start_obedient(&["--on-exit", "hold"]);
    manager.until_state("starting");
    pod.exit(74);
    let message = manager.until_state("failed")["reason"]["message"].to_string();
    assert!(message.contains("keystore.tmp already exists"), "{message}");
}
