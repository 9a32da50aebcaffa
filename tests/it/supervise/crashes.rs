//! `kill -9` of the manager at every step of writing the journal and at any other time: the next
//! manager continues with what is written, and one call brings it to what was requested.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::client::{self, Answer};
use super::manager::Manager;
use super::pod::Pod;
use super::processes::{eventually, is_alive};
use crate::support::isolated::can_run;
use crate::support::program::stayput;
use crate::support::programs::children;
use crate::support::skip;

/// The desired state and the sequence in the journal.
fn journaled(pod: &Pod) -> Option<(String, u64)> {
    let bytes = fs::read(pod.journal()).ok()?;
    let journal: Value = serde_json::from_slice(&bytes).expect("the journal is whole at any time");
    let intent = &journal["intent"];
    Some((intent["desired"].as_str()?.to_owned(), intent["fencing"]["sequence"].as_u64()?))
}

/// A request that alternates between stop and start.
struct Request {
    sequence: u64,
}

impl Request {
    fn wanted(&self) -> (&'static str, &'static str) {
        if self.sequence.is_multiple_of(2) {
            ("running", "running")
        } else {
            ("stopped", "stopped")
        }
    }

    fn send(&self, pod: &Pod) -> Option<Answer> {
        let kind = if self.wanted().0 == "running" { "start" } else { "stop" };
        let target = format!("/es/{kind}?wait=30s");
        client::ask(&pod.socket(), "POST", &target, &format!(r#"{{"sequence":{}}}"#, self.sequence))
            .ok()
    }
}

/// After a crash with `request` under way: the journal has the old intent or the new one, a new
/// manager follows it, and sending the request again carries it out.
fn recovers(pod: &Pod, request: &Request, answered: Option<&Answer>) -> Manager {
    let found = journaled(pod);
    if let Some((desired, sequence)) = &found {
        let (wanted, _) = request.wanted();
        let before = *sequence < request.sequence;
        assert!(before || desired == wanted, "{found:?} with request {}", request.sequence);
        if answered.is_some_and(|answer| answer.code < 300) {
            assert_eq!(*sequence, request.sequence, "an answered request is not forgotten");
        }
    }
    let desired = found.map_or_else(|| "running".to_owned(), |(desired, _)| desired);
    let manager = pod.start_sleeper();
    manager.until("as journaled", |status| {
        status["desired"] == desired.as_str() && status["state"] == desired.as_str()
    });
    let answer = request.send(pod).expect("an answer");
    assert_eq!(answer.code, 200, "one call is enough: {answer:?}\n{}", manager.log());
    let (_, state) = request.wanted();
    assert_eq!(answer.body["state"], state);
    assert_eq!(children(manager.pid()).len(), usize::from(state == "running"));
    manager
}

/// Random times, but for every third crash: only the time is random, every outcome is checked.
/// `STAYPUT_CRASHES` sets how many.
#[test] // proves JOURNAL-3
fn killed_at_any_moment_it_goes_on_with_what_is_written() {
    let crashes = std::env::var("STAYPUT_CRASHES").map_or(30, |text| text.parse().unwrap());
    let pod = Pod::new();
    let mut manager = pod.start_sleeper();
    manager.until_state("running");
    let mut under_way = 0;
    // More where the machine was too slow for those.
    let enough = crashes / 10;
    for sequence in 1..=4 * crashes {
        if sequence > crashes && under_way >= enough {
            break;
        }
        let request = Request { sequence };
        let is_written = || journaled(&pod).is_some_and(|(_, found)| found == sequence);
        let answered = thread::scope(|scope| {
            let asking = scope.spawn(|| request.send(&pod));
            if sequence.is_multiple_of(3) || sequence > crashes {
                // As soon as it is written down, however long the disk takes for that.
                while !is_written() && !asking.is_finished() {
                    thread::yield_now();
                }
            } else {
                // From before the request arrives until after it is done, in irregular steps.
                thread::sleep(Duration::from_micros(sequence * 977 % 40_000));
            }
            manager.crash();
            asking.join().unwrap()
        });
        // Written down, and not done yet.
        under_way += u64::from(is_written() && answered.is_none());
        manager = recovers(&pod, &request, answered.as_ref());
    }
    println!("{under_way} of {crashes} requests were under way");
    assert!(under_way >= enough, "{under_way} of {crashes} requests were under way");
}

/// Killed right before every system call that writes the journal, and so right after every other.
#[test] // proves JOURNAL-3
fn killed_at_every_step_of_writing_the_journal_it_goes_on_with_what_is_written() {
    let name = "supervise::crashes::killed_at_every_step_of_writing_the_journal_it_goes_on_with_what_is_written";
    if let Err(reason) = can_run(&["strace", "-f", "-e", "trace=rename"]) {
        return skip(name, &format!("strace: {reason}"));
    }
    let mut killed = 0;
    for call in ["unlink", "openat", "write", "fsync", "rename"] {
        // One version at boot, one or two with the spawn and the stop, one at the end; versions
        // that come close together are written once. Each has two calls of `fsync`, for file and
        // directory. strace counts for each thread, so the number of steps depends on which thread
        // writes.
        let points = (1..=20).take_while(|&when| crash_at(call, when)).count();
        assert!(points >= 1, "{call} was never met");
        killed += points;
    }
    println!("killed at {killed} points");
}

/// As PID 1 the end of the manager is the end of all. Here a process that has left the leader's session and
/// parent lives on.
#[test] // proves JOURNAL-7
fn what_a_killed_manager_has_left_is_ended_before_the_next_start() {
    let pod = Pod::new();
    let script = "setsid sh -c 'echo $$ >left; exec sleep 600' & exec sleep 601";
    let mut manager = pod.start::<&str>(&[], &["sh", "-c", script]);
    manager.until_state("running");
    let left: u32 = eventually("its pid", || pod.read("left").trim().parse().ok());
    let leader = manager.engine();
    manager.signal(Signal::SIGKILL);
    assert_eq!(manager.ended(), 137);
    eventually("the leader's end", || (!is_alive(leader)).then_some(()));
    assert!(is_alive(left), "nobody has ended it");

    let next = pod.start_sleeper();
    next.until_state("running");
    assert!(!is_alive(left), "{}", next.log());
    let said = format!("still live: {left}; they are killed before the engine is started");
    next.until_logged_times(&said, 1);
}

/// Two managers with one state directory: a mistake, and no reason to end an engine that runs.
#[test] // proves JOURNAL-7
fn an_engine_of_a_manager_that_lives_is_not_ended_by_another_one() {
    let pod = Pod::new();
    let manager = pod.start_sleeper();
    manager.until_state("running");
    let engine = manager.engine();
    let mut second = stayput(["run", "--log-format", "text", "--on-exit", "exit", "--socket"]);
    second.arg(pod.path("second.sock")).arg("--state-dir").arg(pod.path("state"));
    second.args(["--", "sleep", "600"]);
    let mut second = pod.spawn(&mut second);
    assert_eq!(second.ended(), 78, "{}", second.log());
    second.until_logged(&format!("another stayput (pid {}) still runs", manager.pid()));
    assert!(is_alive(engine));
}

fn crash_at(call: &str, when: u32) -> bool {
    let pod = Pod::new();
    let traced = pod.command::<&str>(&[], &["sleep", "600"]);
    // Only calls about the state directory count.
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o"]).arg(pod.path("trace")).arg("-P").arg(pod.path("state"));
    command.arg("-P").arg(pod.journal()).arg("-P").arg(pod.path("state/journal.json.new"));
    command.arg("-e").arg(format!("trace={call}"));
    command.arg("-e").arg(format!("inject={call}:signal=KILL:when={when}"));
    command.arg(traced.get_program()).args(traced.get_args()).current_dir(pod.directory());
    let mut manager = pod.spawn(&mut command);
    let request = Request { sequence: 1 };
    let answered = loop {
        // Either it is killed at the step, or the request reaches it.
        if manager.has_ended() {
            break None;
        }
        if let Some(answer) = request.send(&pod) {
            break Some(answer);
        }
        thread::sleep(Duration::from_millis(2));
    };
    let hit = eventually("the end, or a manager that was not hit", || {
        let idle = answered.as_ref().is_some_and(|answer| answer.code == 200)
            && journaled(&pod).is_some_and(|(desired, _)| desired == "stopped");
        if manager.has_ended() { Some(true) } else { idle.then_some(false) }
    });
    manager.crash_if_alive();
    let next = recovers(&pod, &request, answered.as_ref());
    let start = Request { sequence: 2 };
    assert_eq!(start.send(&pod).expect("an answer").code, 200);
    drop(next);
    hit
}
