//! Another version of the manager takes over, and the engine runs on.

mod go_back;
mod refused;

use std::fs;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::O_NONBLOCK;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::client::Answer;
use super::manager::Manager;
use super::pod::Pod;
use super::processes::{
    descendants, descriptor_flags as flags, eventually, is_alive, name as name_of,
};
use crate::support::isolated::can_run;
use crate::support::program::{finish, stayput};
use crate::support::programs::{children, send, without_settings, write_program};
use crate::support::skip;

/// Puts a program where the manager's program is, as `stayput install` does.
fn install(pod: &Pod, make: impl FnOnce(&Path)) {
    let new = pod.path("stayput.new");
    make(&new);
    fs::rename(new, pod.path("stayput")).expect("renamed");
}

/// The program of these tests, with another version in it.
fn install_version(pod: &Pod, version: &str) {
    install(pod, |path| {
        let change = format!("s/0\\.1\\.0/{version}/g");
        let mut sed = Command::new("sed");
        sed.arg(change).arg(env!("CARGO_BIN_EXE_stayput")).env("LC_ALL", "C");
        let output = sed.output().expect("sed");
        assert!(output.status.success());
        write_program(path, &output.stdout);
    });
}

/// A manager whose program is in the pod.
fn start(pod: &Pod, options: &[&str], engine: &[&str]) -> Manager {
    start_below(pod, &[], options, engine)
}

/// The same, started by this program.
fn start_below(pod: &Pod, by: &[&str], options: &[&str], engine: &[&str]) -> Manager {
    pod.spawn(&mut command_below(pod, by, options, engine))
}

fn command_below(pod: &Pod, by: &[&str], options: &[&str], engine: &[&str]) -> Command {
    install_version(pod, "0.1.0");
    let plain = pod.command(options, engine);
    let (own, program) = (pod.path("stayput"), by.first());
    let mut command = Command::new(program.map_or(own.as_os_str(), |program| program.as_ref()));
    command.args(by.iter().skip(1));
    if program.is_some() {
        command.arg(&own);
    }
    command.args(plain.get_args()).current_dir(pod.directory());
    without_settings(&mut command);
    command
}

/// Requests an upgrade once nothing is being written any more: after a start that lasts a moment.
fn request(manager: &Manager) -> Answer {
    eventually("an answer at rest", || {
        let answer = manager.post("/es/upgrade", "");
        (answer.problem() != "not_at_rest").then_some(answer)
    })
}

/// Requests an upgrade, and waits for the version that has taken over.
fn upgrade(manager: &Manager) -> Value {
    let answer = request(manager);
    assert_eq!(answer.code, 202, "{:#}\n{}", answer.body, manager.log());
    let before = answer.body["manager"]["boot_id"].clone();
    manager.until("another boot", |status| status["manager"]["boot_id"] != before)
}

/// When a process was started, in ticks since boot.
fn started(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is alive");
    let (_, rest) = stat.rsplit_once(')').expect("a name");
    rest.split_ascii_whitespace().nth(19).expect("a time").to_owned()
}

fn environment(pid: u32) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/environ")).expect("ours")).into_owned()
}

#[test]
fn the_files_that_the_engine_was_started_on_are_known_to_the_next_version() {
    let pod = Pod::new();
    pod.write("config/a.yml", "a: 1\n");
    let config = pod.path("config").display().to_string();
    let manager = start(&pod, &["--config", &config], &["sleep", "600"]);
    let files = manager.until_state("running")["config"]["files"].clone();
    pod.write("config/a.yml", "a: 2\n");
    let drifts = |status: &Value| status["config"]["drift"] == true;
    let before = manager.until("drift", drifts)["config"].clone();
    assert_eq!(before["run_files"], files);
    install_version(&pod, "0.1.1");
    upgrade(&manager);
    let after = manager.until("drift", drifts)["config"].clone();
    assert_eq!((&after["run_files"], &after["files"]), (&files, &before["files"]));
}

#[test] // proves HOST-4
fn another_version_takes_over_and_the_engine_runs_on() {
    let pod = Pod::new();
    let script = "sh -c 'sleep 600 & echo $! >orphan'; exec sleep 600";
    let mut manager = start(&pod, &[], &["sh", "-c", script]);
    manager.until_state("running");
    assert_eq!(manager.post("/es/start", r#"{"sequence":7}"#).code, 200);
    let engine = manager.engine();
    let (since, before) = (started(engine), manager.status());
    install_version(&pod, "0.1.1");
    let after = upgrade(&manager);
    assert_eq!(after["manager"]["version"], "0.1.1");
    assert_eq!(before["manager"]["upgraded_from"], Value::Null);
    assert_eq!(after["manager"]["upgraded_from"], "0.1.0");
    for field in ["state", "ready", "run", "starts", "sequence", "desired", "last_request", "since"]
    {
        assert_eq!(after[field], before[field], "{field}");
    }
    assert_eq!(after["manager"]["errors"], before["manager"]["errors"]);
    assert_eq!((manager.engine(), started(engine)), (engine, since));
    // The next one is found in the same place.
    manager.until("written", |status| status["manager"]["durable"] == true);
    install_version(&pod, "0.1.2");
    let mut client = stayput(["upgrade", "--socket"]);
    let said = finish(client.arg(pod.socket()));
    let expected = "version 0.1.2 has taken over from version 0.1.1\n";
    assert_eq!((said.code, said.stdout.as_str()), (0, expected), "{}", said.stderr);
    let answer = request(&manager);
    assert_eq!((answer.code, &answer.body["manager"]["version"]), (200, &"0.1.2".into()));
    // What was requested before is known, and what is requested now is written down and done.
    assert_eq!(manager.post("/es/stop", r#"{"sequence":6}"#).code, 409);
    let orphan: u32 = pod.read("orphan").trim().parse().expect("a pid");
    assert!(is_alive(orphan));
    let answer = manager.post("/es/stop?wait=30s", r#"{"sequence":8}"#);
    assert_eq!((answer.code, &answer.body["state"]), (200, &"stopped".into()));
    assert!(!is_alive(orphan), "what the engine has left is ended, too");
    let journal: Value = serde_json::from_slice(&fs::read(pod.journal()).unwrap()).unwrap();
    assert_eq!(journal["boot_id"], answer.body["manager"]["boot_id"]);
    // Also while the engine is stopped.
    install_version(&pod, "0.1.3");
    assert_eq!(upgrade(&manager)["state"], "stopped");
    assert_eq!(manager.post("/es/start?wait=30s", r#"{"sequence":9}"#).code, 200);
    assert!(!environment(manager.engine()).contains("STAYPUT_HAND_OVER"));
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.ended(), 143);
}

#[test] // proves HOST-4
fn requests_that_wait_are_answered_and_new_connections_are_not_refused() {
    let pod = Pod::new();
    let options = ["--listen", "127.0.0.1:0", "--insecure-no-auth"];
    let manager = start(&pod, &options, &["sleep", "600"]);
    manager.until_state("running");
    let port = manager.port();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let connecting = scope.spawn(|| {
            let mut connected = 0_u32;
            while !over.load(Ordering::Relaxed) {
                TcpStream::connect(("127.0.0.1", port)).expect("nobody is refused");
                connected += 1;
                thread::sleep(Duration::from_millis(1));
            }
            connected
        });
        for version in ["0.1.1", "0.1.2"] {
            let cursor = manager.status()["cursor"].as_str().unwrap().to_owned();
            let target = format!("/es/status?after={cursor}&timeout=60s");
            let waiting = scope.spawn(|| {
                let target = target;
                super::client::ask(&pod.socket(), "GET", &target, "").expect("an answer").code
            });
            install_version(&pod, version);
            assert_eq!(upgrade(&manager)["manager"]["version"], version);
            assert!([200, 204].contains(&waiting.join().unwrap()));
        }
        over.store(true, Ordering::Relaxed);
        assert!(connecting.join().unwrap() > 0);
    });
}

#[test] // proves HOST-4
fn term_is_not_lost_while_another_version_takes_over() {
    // A manager that TERM ends itself, because it has no handler yet, does not end with 5.
    let polite = "trap 'exit 5' TERM; : >up; while :; do sleep 600 & wait; done";
    let mut meanwhile = 0;
    // So many milliseconds after the request, or when its answer begins: a few times, and then until TERM
    // has come in between.
    let times = [0, 5, 10, 20, 30, 40, 60, 80].map(Some).into_iter().chain([None; 40]);
    for (round, time) in times.enumerate() {
        if round >= 12 && meanwhile > 0 {
            break;
        }
        let pod = Pod::new();
        let mut manager = start(&pod, &[], &["sh", "-c", polite]);
        manager.until_state("running");
        eventually("the engine's trap", || pod.path("up").exists().then_some(()));
        let engine = manager.engine();
        install_version(&pod, "0.1.1");
        let mut stream = UnixStream::connect(pod.socket()).expect("it listens");
        let request = "POST /es/upgrade HTTP/1.1\r\nHost: stayput\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut head = [0; 12];
        match time {
            Some(time) => thread::sleep(Duration::from_millis(time)),
            None => stream.read_exact(&mut head).expect("an answer"),
        }
        manager.signal(Signal::SIGTERM);
        let environment = environment(manager.pid());
        if time.is_some() {
            // It may have ended without an answer.
            let _ = stream.read_exact(&mut head);
        }
        drop(stream);
        let is_executed = environment.is_empty() || environment.contains("STAYPUT_HAND_OVER");
        meanwhile += u32::from(&head == b"HTTP/1.1 202" && !is_executed);
        let head = String::from_utf8_lossy(&head);
        assert_eq!(manager.ended(), 5, "after {time:?} ms: {head}\n{}", manager.log());
        eventually("the engine's end", || (!is_alive(engine)).then_some(()));
    }
    println!("{meanwhile} times it was accepted, and the other program was not executed yet");
    assert!(meanwhile > 0, "TERM never came while another version took over");
}

#[test] // proves HOST-4
fn the_engine_of_a_stop_with_resume_comes_back_when_it_was_due() {
    let pod = Pod::new();
    let manager = start(&pod, &[], &["sleep", "600"]);
    manager.until_state("running");
    // Before the stop: on a slow machine it takes long.
    install_version(&pod, "0.1.1");
    let stopped = manager.post("/es/stop?wait=30s", r#"{"sequence":3,"resumeAfter":"15s"}"#).body;
    let after = upgrade(&manager);
    assert!(stopped["resume"].is_object(), "{stopped:#}");
    assert_eq!((&after["state"], &after["resume"]), (&"stopped".into(), &stopped["resume"]));
    assert_eq!(manager.until_state("running")["sequence"], 3);
}

/// Reads a pipe more slowly than it is written, until nobody can write to it any more.
fn read_slowly(mut reader: PipeReader, read: &AtomicUsize) -> String {
    let (mut text, mut part) = (Vec::new(), [0; 512]);
    loop {
        let length = reader.read(&mut part).expect("a pipe");
        if length == 0 {
            return String::from_utf8(text).expect("UTF-8");
        }
        text.extend_from_slice(&part[..length]);
        read.fetch_add(length, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(2));
    }
}

/// A pipe that is soon full.
fn small_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = pipe().expect("a pipe");
    fcntl(&writer, FcntlArg::F_SETPIPE_SZ(4096)).expect("a small one");
    (reader, writer)
}

#[test] // proves HOST-4
fn no_line_that_the_engine_writes_is_lost() {
    let pod = Pod::new();
    // A line that it cannot write is missing, and the next one is written.
    let script = "i=0; while :; do i=$((i+1)); echo out $i.; echo err $i. >&2; done";
    let mut command = command_below(&pod, &[], &[], &["sh", "-c", script]);
    let ((stdout, out), (stderr, err)) = (small_pipe(), small_pipe());
    let mut manager = pod.spawn_with(command.stdout(out), err);
    // It would hold the pipes open.
    drop(command);
    let read = [const { AtomicUsize::new(0) }; 2];
    let (pod, read) = (&pod, &read);
    // When this fails, the manager ends first, and so what is read does.
    thread::scope(move |scope| {
        let [out, err] = read;
        let readers =
            [scope.spawn(|| read_slowly(stdout, out)), scope.spawn(|| read_slowly(stderr, err))];
        manager.until_state("running");
        for version in ["0.1.1", "0.1.2"] {
            let before = [out, err].map(|read| read.load(Ordering::Relaxed));
            install_version(pod, version);
            upgrade(&manager);
            for (read, before) in [out, err].into_iter().zip(before) {
                // More than fits into the pipe: some of it was written after the upgrade.
                let more = || (read.load(Ordering::Relaxed) > before + 8192).then_some(());
                eventually("the engine writes", more);
            }
            for (pid, number) in [(manager.pid(), 1), (manager.pid(), 2), (manager.engine(), 2)] {
                assert_eq!(flags(pid, number) & O_NONBLOCK, 0, "{pid}: {number}");
            }
        }
        assert_eq!(manager.post("/es/stop?wait=30s", "{}").body["state"], "stopped");
        manager.signal(Signal::SIGTERM);
        manager.ended();
        for (name, reader) in ["out ", "err "].into_iter().zip(readers) {
            let text = reader.join().expect("it has read");
            // The manager writes to stderr, too, and a long line of it in parts.
            let numbers = text.split(name).skip(1).map(|rest| rest.split_once('.').unwrap().0);
            let mut last = 0;
            for number in numbers {
                last += 1;
                assert_eq!(number, last.to_string(), "{name}");
            }
            assert!(last > 1000, "{name}{last}");
        }
    });
}

#[test] // proves HOST-4
fn as_pid_1_it_stays_pid_1_and_ends_what_is_orphaned() {
    const NAMESPACE: [&str; 5] = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let name = "supervise::upgrade::as_pid_1_it_stays_pid_1_and_ends_what_is_orphaned";
    if let Err(reason) = can_run(&NAMESPACE) {
        return skip(name, &reason);
    }
    let pod = Pod::new();
    let script = "setsid sh -c 'sleep 6001 & sleep 6002 &'; exec sleep 6003";
    let manager = start_below(&pod, &NAMESPACE, &[], &["sh", "-c", script]);
    let before = manager.until_state("running");
    let init = children(manager.pid())[0];
    let sleepers = || {
        let all = descendants(init).into_iter();
        all.filter(|&pid| name_of(pid) == "sleep").collect::<Vec<_>>()
    };
    eventually("two orphans beside the engine", || (sleepers().len() == 3).then_some(()));
    for version in ["0.1.1", "0.1.2"] {
        install_version(&pod, version);
        let after = upgrade(&manager);
        assert_eq!((&after["manager"]["pid"], &after["run"]), (&1.into(), &before["run"]));
    }
    assert_eq!((name_of(init), sleepers().len()), ("stayput".to_owned(), 3));
    let orphan = children(init)
        .into_iter()
        .find(|pid| crate::support::programs::command_line(*pid).contains("6001"));
    send(orphan.expect("a child of PID 1"), Signal::SIGKILL);
    eventually("it is reaped", || (children(init).len() == 2).then_some(()));
    assert_eq!(manager.post("/es/stop?wait=30s", "{}").body["state"], "stopped");
    eventually("nothing is left", || children(init).is_empty().then_some(()));
    assert_eq!(manager.post("/es/start?wait=30s", "{}").code, 200);
}

#[test] // proves STOP-25
fn the_archive_is_shown_once_the_engine_is_ready_and_by_the_next_version_too() {
    let pod = Pod::new();
    pod.gate.set(false);
    // The server JVM, as it is recognized: by its command line.
    let script = "exec -a java bash -c 'touch jvm; while :; do sleep 600 & wait; done' \
                  -XX:SharedArchiveFile=/nonexistent/warm.jsa org.opensearch.bootstrap.OpenSearch";
    let manager = start(&pod, &[], &["bash", "-c", script]);
    eventually("the JVM", || pod.path("jvm").exists().then_some(()));
    assert_eq!(manager.status()["archive"], Value::Null);
    pod.gate.set(true);
    let archive = json!({ "path": "/nonexistent/warm.jsa", "used": false });
    let shown = || {
        eventually("the JVM is read", || (manager.status()["archive"] == archive).then_some(()));
    };
    shown();
    install_version(&pod, "0.1.1");
    upgrade(&manager);
    shown();
    assert_eq!(manager.post("/es/stop?wait=30s", r#"{"sequence":1}"#).code, 200);
    // One by each version that shows it.
    manager.until_logged_times("does not use the archive of classes", 2);
}

#[test] // proves STOP-15
fn requests_that_wait_when_another_version_takes_over_are_answered() {
    let pod = Pod::new();
    let manager = start(&pod, &[], &["sleep", "600"]);
    let before = manager.until_state("running")["manager"]["boot_id"].clone();
    install_version(&pod, "0.1.1");
    let codes = eventually("an answer at rest", || {
        let mut codes = codes_of_upgrades_at_once(&manager, &pod.socket());
        codes.retain(|code| code != "409");
        (!codes.is_empty()).then_some(codes)
    });
    assert_eq!(codes[0], "202", "{codes:?}");
    assert!(codes[1..].iter().all(|code| code == "503"), "{codes:?}");
    manager.until("another boot", |status| status["manager"]["boot_id"] != before);
}

/// Requests eight upgrades, all of which are there before it decides about the first. Returns the codes
/// of the answers, sorted.
fn codes_of_upgrades_at_once(manager: &Manager, socket: &Path) -> Vec<String> {
    manager.signal(Signal::SIGSTOP);
    let asking: Vec<_> = (0..8)
        .map(|_| {
            let mut stream = UnixStream::connect(socket).expect("it listens");
            let request = "POST /es/upgrade HTTP/1.1\r\nHost: stayput\r\nConnection: close\r\n\
                           Content-Length: 0\r\n\r\n";
            stream.write_all(request.as_bytes()).expect("it reads");
            stream
        })
        .collect();
    manager.signal(Signal::SIGCONT);
    let mut codes: Vec<_> = asking
        .into_iter()
        .map(|mut stream| {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("an answer");
            answer.split(' ').nth(1).unwrap_or_default().to_owned()
        })
        .collect();
    codes.sort();
    codes
}
