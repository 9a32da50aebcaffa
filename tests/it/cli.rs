//! The client commands, tested by their output, exit codes and requests.

mod restart;

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, bind, socket};
use stayput_api::{Code, Config, LastRequest, Problem, Reason, RequestKind, State, Status};
use tempfile::TempDir;

use crate::support::fake_manager::{Act, FakeManager, Reply, Script, running, stopped, stopping};
use crate::support::program::{Ended, finish, stayput};

/// Runs a manager with this script; returns the client's answer to `line`.
fn against(script: Script, line: &str) -> (Ended, FakeManager) {
    let dir = TempDir::new().expect("a directory");
    let (fake, socket) = FakeManager::on_socket(dir.path(), script);
    let mut command = stayput(line.split_whitespace());
    (finish(command.env("STAYPUT_SOCKET", socket)), fake)
}

fn story(first: Status, acts: impl Into<VecDeque<Act>>) -> Script {
    Script::Story { first: Box::new(first), acts: acts.into() }
}

/// The lines without the time that each begins with.
fn lines(ended: &Ended) -> Vec<&str> {
    ended.stdout.lines().map(|line| line.split_once("  ").expect("a time and a text").1).collect()
}

#[test]
fn usage_errors_are_64_and_help_is_none() {
    for line in [
        "",
        "frobnicate",
        "stop --drain soon",
        "wait --for tea",
        "wait --for checksum=",
        "wait --for checksum=4f2a9c01b3d7",
        "start --checksum a --last-good",
        "status --socket /s --url https://h:1",
        "status --ca /ca",
        "status --url h:1",
        "status --url https://h:1",
    ] {
        let ended = finish(&mut stayput(line.split_whitespace()));
        assert_eq!((ended.code, ended.stdout.as_str()), (64, ""), "{line}: {}", ended.stderr);
        assert!(!ended.stderr.is_empty(), "{line}");
    }
    for line in ["--help", "run --help", "help stop", "--version"] {
        let ended = finish(&mut stayput(line.split_whitespace()));
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{line}");
        assert!(!ended.stdout.is_empty(), "{line}");
    }
    let version = finish(&mut stayput(["version"])).stdout;
    assert!(version.starts_with("stayput 0.1.0 ("), "{version}");
    assert_eq!(version, finish(&mut stayput(["--version"])).stdout);
}

#[test]
fn run_tells_all_bad_settings_at_once() {
    let mut command = stayput(["run", "--grace", "soon", "--socket", "/s", "--", "true"]);
    let ended = finish(command.env("STAYPUT_POD_UID", "me"));
    assert_eq!((ended.code, ended.stdout.as_str()), (64, ""));
    let problems: Vec<_> = ended.stderr.lines().collect();
    assert_eq!(problems.len(), 3, "{}", ended.stderr);
    for (problem, name) in
        problems.iter().zip(["STAYPUT_POD_UID is \"me\"", "--grace: ", "--socket needs"])
    {
        assert!(problem.starts_with(&format!("stayput: {name}")), "{problem}");
    }
}

#[test]
fn status_is_a_page_of_facts() {
    let (ended, _fake) = against(story(stopped(7), []), "status");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    for fact in [
        "state         stopped\n",
        "desired       stopped\n",
        "pod           search/logs-2, uid 0b4a1f6e-8e5c-4c1e-9a55-2f1f0c9d1b7a\n",
        "last exit     code 143 (stopped), took 812ms, had run 1h\n",
        "last request  stop #42, accepted, by uid:0\n",
    ] {
        assert!(ended.stdout.contains(fact), "{fact:?} is not in\n{}", ended.stdout);
    }
}

#[test]
fn json_is_the_apis_own() {
    let mut status = serde_json::to_value(running(1)).expect("JSON");
    status["from_the_future"] = serde_json::json!({"a": [1, 2]});
    let body = format!("{}\n", serde_json::to_string_pretty(&status).expect("JSON"));
    let reply =
        Reply { code: 200, content_type: "application/json", body: body.clone(), sequence: None };
    for line in ["status --json", "stop --json", "start --json", "wait --for running --json"] {
        let (ended, _fake) = against(Script::Always(reply.clone()), line);
        assert_eq!((ended.code, &ended.stdout, ended.stderr.as_str()), (0, &body, ""), "{line}");
    }
}

#[test]
fn a_refusal_is_1_with_the_apis_message() {
    let mut problem = Problem::new(Code::WrongPod, "this is pod b, not pod a");
    problem.current = Some(Box::new(running(1)));
    let reply = Reply::json(409, &problem);
    let (ended, fake) = against(Script::Always(reply.clone()), "stop --no-wait --pod a");
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert_eq!(ended.stderr, "stayput: refused: this is pod b, not pod a (wrong_pod, HTTP 409)\n");
    assert_eq!(fake.posts(), [("/es/stop".into(), r#"{"pod":"a"}"#.into())]);
    let (ended, _fake) = against(Script::Always(reply.clone()), "stop --pod a --json");
    assert_eq!((ended.code, ended.stdout), (1, format!("{}\n", reply.body)));
}

#[test]
fn what_is_no_manager_is_1_and_said_so() {
    let body = "<html>hello</html>".into();
    let reply = Reply { code: 404, content_type: "text/html", body, sequence: None };
    let (ended, _fake) = against(Script::Always(reply), "status");
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("answered HTTP 404 with text/html"), "{}", ended.stderr);
}

#[test]
fn a_manager_that_is_not_there_is_2() {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("dead.sock");
    for hint in
        ["does a manager run here with --socket", "the manager that made this socket has ended"]
    {
        for line in ["status", "stop", "start", "restart", "wait --for stopped", "status --watch"] {
            let mut command = stayput(line.split_whitespace());
            let ended = finish(command.arg("--socket").arg(&path));
            assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{line}");
            assert!(ended.stderr.contains(hint), "{line}: {}", ended.stderr);
        }
        // The second time, the socket's file exists, but no process listens.
        let unix = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None);
        let address = UnixAddr::new(&path).expect("a path");
        // After the second time it is there already.
        let _ = bind(unix.expect("a socket").as_raw_fd(), &address);
    }
}

fn stop_act() -> Act {
    let mut waiting = stopping(2);
    waiting.reason =
        Some(Reason { code: "grace".into(), message: "TERM was sent; KILL follows in 2m".into() });
    Act {
        statuses: vec![waiting, Status { state: State::Killing, ..stopping(3) }, stopped(4)],
        reply: Reply::json(200, stopped(4)),
    }
}

fn start_act(sequence: u64, reply: Reply) -> Act {
    let up = |cursor, state| Status { state, sequence, starts: 2, ..running(cursor) };
    Act { statuses: vec![up(5, State::Starting), up(6, State::Running)], reply }
}

#[test]
fn stop_shows_each_change_and_why_it_waits() {
    let line = "stop --drain 10s --grace 2m --sequence 42";
    let (ended, fake) = against(story(running(1), [stop_act()]), line);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert_eq!(
        lines(&ended),
        [
            "running, ready, pid 23",
            "stopping, pid 23: TERM was sent; KILL follows in 2m",
            "killing, pid 23",
            "stopped, ended with code 143 (stopped)",
        ]
    );
    let body = r#"{"sequence":42,"grace":"2m","drain":"10s"}"#;
    assert_eq!(fake.posts(), [("/es/stop?wait=60000ms".into(), body.into())]);
}

#[test] // proves ACCESS-21
fn times_and_paths_are_taken_as_people_write_them() {
    let dir = TempDir::new().expect("a directory");
    let (fake, socket) = FakeManager::on_socket(dir.path(), story(running(1), [stop_act()]));
    let mut command = stayput(["stop", "--drain", "10", "--grace", "60", "--socket"]);
    command.arg(socket.file_name().expect("a name")).current_dir(dir.path());
    let ended = finish(&mut command);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let body = r#"{"grace":"1m","drain":"10s"}"#;
    assert_eq!(fake.posts(), [("/es/stop?wait=60000ms".into(), body.into())]);
}

#[test]
fn a_stop_that_takes_too_long_goes_on() {
    // With a timeout of zero, so the answer counts and not the clock.
    let reply = Reply::json(202, stopping(1));
    let (ended, _fake) = against(Script::Always(reply), "stop --timeout 0s");
    assert_eq!(ended.code, 124);
    assert!(ended.stderr.contains("not done after 0s, and continues"), "{}", ended.stderr);
    assert!(ended.stderr.contains("stayput wait --for stopped"), "{}", ended.stderr);
}

#[test]
fn a_stop_that_is_not_done_when_the_manager_answers_is_asked_for_again_as_a_retry() {
    let early = Act { statuses: vec![stopping(2)], reply: Reply::json(202, stopping(2)) };
    let late = Act { statuses: vec![stopped(3)], reply: Reply::json(200, stopped(3)) };
    let (ended, fake) = against(story(running(1), [early, late]), "stop --grace 1s");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let bodies: Vec<_> = fake.posts().into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, [r#"{"grace":"1s"}"#, r#"{"sequence":42,"grace":"1s"}"#]);
}

/// The answer after the longest wait may have the status of a later request, and a number of that
/// must not be taken.
#[test] // proves STOP-40
fn a_start_is_followed_by_the_status_when_another_request_was_judged_meanwhile() {
    let status = |cursor, state| Status {
        state,
        sequence: 43,
        last_request: Some(LastRequest {
            sequence: 43,
            kind: RequestKind::Start,
            accepted: false,
            by: "uid:0".into(),
            at: "2026-11-21T10:00:00Z".into(),
        }),
        ..running(cursor)
    };
    let starting = status(2, State::Starting);
    let late = Reply::json(202, &starting).of_request(42);
    let early = Act { statuses: vec![starting.clone()], reply: late };
    let problem = Problem::new(Code::StaleSequence, "sequence 42 is not above 43");
    let stale = Act { statuses: vec![status(3, State::Running)], reply: Reply::json(409, problem) };
    let (ended, fake) = against(story(stopped(1), [early, stale]), "start");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let bodies: Vec<_> = fake.posts().into_iter().map(|(_, body)| body).collect();
    let again = r#"{"sequence":42,"config":"mounted"}"#;
    assert_eq!(bodies, [r#"{"config":"mounted"}"#, again]);
}

#[test]
fn no_wait_returns_once_accepted() {
    let reply = Reply::json(202, stopping(1));
    let (ended, fake) = against(Script::Always(reply), "stop --no-wait");
    assert_eq!((ended.code, fake.seen().len()), (0, 1));
    assert_eq!(fake.posts(), [("/es/stop".into(), "{}".into())]);
}

fn checksum() -> String {
    format!("sha256:{}", "4f".repeat(32))
}

#[test]
fn wait_ends_when_it_is_so() {
    let mounted = Config { checksum: Some(checksum()), ..Config::default() };
    let with_config = Status { config: Some(mounted), ..running(1) };
    for (status, goal) in [
        (stopped(1), "stopped".to_owned()),
        (running(1), "running".to_owned()),
        (running(1), "ready".to_owned()),
        (with_config, format!("checksum={}", checksum())),
    ] {
        let (ended, fake) = against(story(status, []), &format!("wait --for {goal}"));
        assert_eq!((ended.code, fake.posts().len()), (0, 0), "{goal}: {}", ended.stderr);
    }
}

#[test]
fn wait_times_out_with_124_and_says_how_it_is() {
    let with_config = Status { config: Some(Config::default()), ..running(1) };
    for (status, goal) in [
        (running(1), "stopped".to_owned()),
        (stopping(1), "stopped".to_owned()),
        (Status { ready: Some(false), ..running(1) }, "ready".to_owned()),
        (Status { state: State::Starting, ..running(1) }, "running".to_owned()),
        (with_config, format!("checksum={}", checksum())),
    ] {
        let state = status.state.as_str();
        let line = format!("wait --for {goal} --timeout 0s");
        let (ended, _fake) = against(story(status, []), &line);
        assert_eq!(ended.code, 124, "{goal}: {}", ended.stderr);
        let message = format!("timed out after 0s: the engine is {state}");
        assert!(ended.stderr.contains(&message), "{}", ended.stderr);
    }
}

#[test]
fn watch_prints_a_line_for_each_change() {
    let dir = TempDir::new().expect("a directory");
    let (_fake, socket) = FakeManager::on_socket(dir.path(), story(running(1), [stop_act()]));
    let mut watch = stayput(["status", "--watch", "--socket"]);
    let mut watch =
        watch.arg(&socket).stdout(Stdio::piped()).spawn().expect("stayput can be executed");
    let mut shown = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    let mut next = || shown.next().expect("a line").expect("UTF-8");
    assert!(next().ends_with("running, ready, pid 23"));
    let stop = finish(stayput(["stop", "--json", "--socket"]).arg(&socket));
    assert_eq!(stop.code, 0, "{}", stop.stderr);
    assert!(next().contains("stopping, "));
    assert!(next().contains("killing, "));
    assert!(next().contains("stopped, "));
    watch.kill().expect("it runs until then");
    watch.wait().expect("it is ours");
}

#[test]
fn output_that_nobody_reads_is_no_panic() {
    let dir = TempDir::new().expect("a directory");
    let (_fake, socket) = FakeManager::on_socket(dir.path(), story(running(1), []));
    assert_eq!(unread(stayput(["status", "--socket"]).arg(&socket)), (Some(1), String::new()));
}

/// The exit code and the errors of a command whose output is closed.
fn unread(command: &mut Command) -> (Option<i32>, String) {
    let (reader, writer) = UnixStream::pair().expect("a pair");
    // Closing it would not be enough: children that other tests start have a copy for a moment.
    reader.shutdown(Shutdown::Both).expect("it is connected");
    let command = command.stdout(OwnedFd::from(writer)).stderr(Stdio::piped());
    let mut child = command.spawn().expect("stayput can be executed");
    let stderr = std::io::read_to_string(child.stderr.take().expect("a pipe")).expect("UTF-8");
    (child.wait().expect("it is ours").code(), stderr)
}

#[test]
fn install_copies_the_program_itself() {
    let dir = TempDir::new().expect("a directory");
    std::fs::write(dir.path().join(".stayput.partial"), "of an attempt that died").expect("a file");
    for _ in 0..2 {
        let ended = finish(stayput(["install"]).arg(dir.path()));
        let installed = dir.path().join("stayput");
        assert_eq!((ended.code, ended.stdout), (0, format!("{}\n", installed.display())));
        let mode = installed.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
        let original = std::fs::read(env!("CARGO_BIN_EXE_stayput")).expect("a file");
        assert!(std::fs::read(&installed).expect("a file") == original);
        assert_eq!(std::fs::read_dir(dir.path()).expect("a directory").count(), 1);
    }
    let ended = finish(stayput(["install"]).arg(dir.path().join("absent")));
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("must be an existing directory"), "{}", ended.stderr);
}

#[test]
fn a_token_that_managers_would_refuse_is_not_made() {
    for (ttl, audience, word) in
        [("2h", "a", "one second to one hour"), ("0s", "a", "one hour"), ("5m", "", "audience")]
    {
        let ended = finish(&mut stayput([
            "token",
            "--key",
            "/k",
            "--scope",
            "control",
            "--audience",
            audience,
            "--ttl",
            ttl,
        ]));
        assert_eq!(ended.code, 64);
        assert!(ended.stderr.contains(word), "{}", ended.stderr);
    }
}

#[test]
fn the_checksum_of_named_directories_and_live_files_is_that_of_the_listing() {
    let dir = TempDir::new().expect("a directory");
    for (path, text) in
        [("main/a.yml", "a"), ("main/users", "u"), ("more/b\\c", "b"), ("more/sub/d", "d")]
    {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let run = |args: &[&str]| finish(stayput(args).current_dir(dir.path()));
    let checksum = run(&["checksum", "m=main", "x=more", "--live", "m/users"]);
    assert_eq!((checksum.code, checksum.stderr.as_str()), (0, ""));

    let files = run(&["checksum", "m=main", "x=more", "--live", "m/users", "--files"]);
    assert_eq!((files.code, &files.stderr), (0, &checksum.stdout));
    let digest = stayput_api::checksum::ContentDigest::of(files.stdout.as_bytes());
    assert_eq!(format!("sha256:{digest}\n"), checksum.stdout);
    let paths: Vec<_> = files.stdout.lines().map(|line| line.split_once("  ").unwrap().1).collect();
    assert_eq!(paths, ["m/a.yml", "x/b\\\\c", "x/sub/d"]);

    for (args, word) in [
        (&["checksum", "main", "more"][..], "each needs a name"),
        (&["checksum", "m=main", "m=more"], "given twice"),
        (&["checksum", "main", "--live", "["], "no pattern"),
        (&["checksum"], "required"),
    ] {
        let ended = run(args);
        assert_eq!((ended.code, ended.stdout.as_str()), (64, ""), "{args:?}");
        assert!(ended.stderr.contains(word), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn waiting_for_what_will_not_come_ends_at_once() {
    let failed = Status { state: State::Failed, ..running(1) };
    let stuck = Status { state: State::Stuck, ..running(1) };
    for status in [stopped(1), stopping(1), failed, stuck] {
        for goal in ["running", "ready"] {
            let state = status.state.as_str();
            let (ended, _fake) =
                against(story(status.clone(), []), &format!("wait --for {goal} --timeout 1h"));
            assert_eq!(ended.code, 1, "{state}: {}", ended.stderr);
            let message = format!("not waiting: the engine is {state}");
            assert!(ended.stderr.contains(&message), "{}", ended.stderr);
        }
    }
    let line = format!("wait --for checksum={} --timeout 1h", checksum());
    let (ended, _fake) = against(story(running(1), []), &line);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("its manager has no --config"), "{}", ended.stderr);
}

#[test]
fn a_manager_that_does_not_answer_does_not_outlast_the_timeout() {
    for line in ["wait --for ready", "stop", "start"] {
        let (ended, _fake) = against(Script::Silence, &format!("{line} --timeout 10ms"));
        assert_eq!(ended.code, 124, "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains("did not answer within 10ms"), "{}", ended.stderr);
    }
}

#[test]
fn nothing_of_the_api_moves_the_cursor() {
    let mut status = running(1);
    let why = |message: &str| Reason { code: "x".into(), message: message.into() };
    status.reason = Some(why("a\u{1b}[2Jb\r\u{9b}c"));
    for line in ["status", "wait --for running"] {
        let (ended, _fake) = against(story(status.clone(), []), line);
        assert!(ended.stdout.contains("a\\u{1b}[2Jb\\r\\u{9b}c"), "{}", ended.stdout);
    }
    let problem = Problem::new(Code::Stuck, "it\u{1b}[2J");
    let (ended, _fake) = against(Script::Always(Reply::json(409, problem)), "stop");
    assert!(ended.stderr.contains("it\\u{1b}[2J"), "{}", ended.stderr);
}

#[test]
fn what_is_no_socket_and_no_sequence_is_told_as_such() {
    let dir = TempDir::new().expect("a directory");
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let ended = finish(stayput(["status", "--socket"]).arg(&file));
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("no socket"), "{}", ended.stderr);
    for number in ["-1", "9007199254740992", "many"] {
        let ended = finish(&mut stayput(["stop", "--sequence", number]));
        assert_eq!(ended.code, 64);
        assert!(ended.stderr.contains("a whole number from 0 to"), "{}", ended.stderr);
    }
}

#[test]
fn a_stop_of_what_is_stopped_is_one_line() {
    let by = |who: &str| {
        let why =
            Reason { code: "stopped_by_request".into(), message: format!("stopped by {who}") };
        Status { reason: Some(why), ..stopped(1) }
    };
    let act = Act { statuses: vec![by("b")], reply: Reply::json(200, by("b")) };
    let (ended, _fake) = against(story(by("a"), [act]), "stop");
    assert_eq!((ended.code, lines(&ended).len()), (0, 1), "{}", ended.stdout);
}
