//! A log that nobody reads: a log driver that blocks, Ctrl-S in a terminal.

use std::io::{BufRead, BufReader, PipeReader, pipe};

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::manager::Manager;
use super::pod::Pod;
use super::processes::descriptor_flags;
use crate::support::metrics::served;

/// A manager that logs into a small pipe.
fn start(pod: &Pod) -> (Manager, PipeReader) {
    let (reader, writer) = pipe().unwrap();
    fcntl(&writer, FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
    let mut command = pod.command::<&str>(&[], &["sleep", "600"]);
    (pod.spawn_with(&mut command, writer), reader)
}

fn lost(status: &Value) -> u64 {
    status["manager"]["log_lines_lost"].as_u64().unwrap()
}

/// Sends requests until lines of the log are lost.
fn fill(manager: &Manager) {
    let before = lost(&manager.status());
    while lost(&manager.status()) == before {
        assert_eq!(manager.post("/es/start", "{}").code, 200, "it runs already");
    }
}

#[test] // proves STOP-10, OPERATE-8
fn nothing_waits_for_its_reader_and_what_is_lost_is_counted() {
    let pod = Pod::new();
    let (manager, reader) = start(&pod);
    manager.until_state("running");
    fill(&manager);
    assert_eq!(manager.get("/livez").code, 200);
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").body["state"], "stopped");
    assert_eq!(manager.post("/es/start?wait=20s", "{}").body["state"], "running");
    let lost = lost(&manager.status());
    let metrics = manager.get("/metrics").body;
    // Nothing else is served than what alerts and dashboards are checked against.
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/proto/metrics/manager.txt");
    let known = served(&std::fs::read_to_string(file).unwrap());
    for (name, labels) in served(metrics.as_str().unwrap()) {
        assert_eq!(known.get(&name), Some(&labels), "{name}");
    }
    let counter = metrics
        .as_str()
        .unwrap()
        .lines()
        .find(|line| line.starts_with("stayput_log_lines_lost_total "));
    let counted: u64 = counter.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(counted >= lost && lost > 0, "{counted} {lost}");

    // The reader is back: first all that was kept, then how much was not, then what is new.
    let mut lines = BufReader::new(reader).lines().map(Result::unwrap);
    let kept = lines.by_ref().position(|line| line.contains("lines of this log were lost"));
    // Those in the pipe, one that is written into it, and 1,000 that wait.
    assert!((900..=1100).contains(&kept.unwrap()), "{kept:?}");
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    assert!(lines.any(|line| line.contains("reason=stopped") || line.contains("state=stopped")));
}

#[test] // proves STOP-10
fn the_managers_end_does_not_wait_for_it_and_its_descriptor_still_blocks() {
    let pod = Pod::new();
    let (mut manager, reader) = start(&pod);
    manager.until_state("running");
    fill(&manager);
    // The engine has the same stderr: it must not get EAGAIN.
    for pid in [manager.pid(), manager.engine()] {
        assert_eq!(descriptor_flags(pid, 2) & nix::libc::O_NONBLOCK, 0, "{pid}");
    }
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.ended(), 143);
    drop(reader);
}

#[test]
fn the_last_line_is_written_before_the_manager_ends() {
    let pod = Pod::new();
    let mut manager = pod.start_sleeper();
    manager.until_state("running");
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.ended(), 143);
    let log = manager.log();
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines.last().unwrap().contains("effect=Exit(143)"), "{lines:#?}");
}
