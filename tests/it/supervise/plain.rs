//! Without options: a replacement for tini.

#![allow(clippy::disallowed_types, reason = "nothing else waits for children in a test")]

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;

use super::processes::{descendants, eventually, field, is_alive, name};
use crate::support::program::{finish, stayput};
use crate::support::programs::{children, send, write_program};

/// `stayput run --` and the engine's command.
fn run<S: AsRef<OsStr>>(engine: impl IntoIterator<Item = S>) -> Command {
    let mut command = stayput(["run", "--"]);
    command.args(engine);
    command
}

fn sh(script: &str) -> Command {
    run(["sh", "-c", script])
}

/// A manager whose engine has become `sleep`.
fn sleeping(directory: &std::path::Path) -> (Child, u32) {
    let child = run(["sleep", "600"]).current_dir(directory).spawn().expect("stayput");
    let engine = eventually("the engine", || {
        children(child.id()).into_iter().find(|&pid| name(pid) == "sleep")
    });
    (child, engine)
}

fn code(mut child: Child) -> i32 {
    let status = child.wait().expect("our own child");
    assert_eq!(status.signal(), None, "the manager itself was ended by a signal");
    status.code().expect("a code")
}

#[test]
fn every_exit_code_is_passed_on() {
    for expected in 0..=255 {
        let ended = finish(&mut sh(&format!("exit {expected}")));
        assert_eq!((ended.code, ended.stderr.as_str()), (expected, ""));
    }
}

#[test]
fn a_death_by_signal_is_128_and_the_signal() {
    let directory = tempfile::tempdir().unwrap();
    for signal in [1, 2, 3, 6, 9, 11, 13, 15, 34, 64] {
        let ended = finish(sh(&format!("kill -{signal} $$")).current_dir(directory.path()));
        assert_eq!((ended.code, ended.stderr.as_str()), (128 + signal, ""));
    }
}

#[test]
fn a_command_that_cannot_be_executed_is_127_or_126_and_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    write_program(&file, b"#!/no/such/interpreter\n");
    let path = file.to_str().unwrap();
    for (command, mode, code, word) in [
        ("no-such-command", 0o644, 127, "No such file"),
        ("/no/such/command", 0o644, 127, "No such file"),
        (path, 0o644, 126, "execute permission"),
        (path, 0o755, 127, "interpreter"),
        (directory.path().to_str().unwrap(), 0o755, 126, "Permission denied"),
    ] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let ended = finish(&mut run([command]));
        assert_eq!(ended.code, code, "{command}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(word) && ended.stderr.contains(command), "{}", ended.stderr);
    }
}

#[test]
fn signals_are_forwarded_to_the_engine() {
    let directory = tempfile::tempdir().unwrap();
    for number in [1, 2, 3, 10, 12, 14, 16, 34, 35, 50, 64] {
        let (child, engine) = sleeping(directory.path());
        // Realtime signals have no name in nix; kill(1) takes numbers.
        let mut kill = Command::new("kill");
        let sent = kill.arg(format!("-{number}")).arg(child.id().to_string()).status().unwrap();
        assert!(sent.success());
        assert_eq!(code(child), 128 + number);
        assert!(!is_alive(engine));
    }
}

#[test]
fn signals_that_end_nothing_are_forwarded_too() {
    for signal in ["WINCH", "CONT", "URG"] {
        let script = format!("trap 'echo got' {signal}; echo ready; while :; do read line; done");
        let mut child = sh(&script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        send(child.id(), format!("SIG{signal}").parse().unwrap());
        // A shell runs its trap when `read` returns.
        let mut stdin = child.stdin.take().unwrap();
        let got = loop {
            stdin.write_all(b"\n").unwrap();
            if let Some(line) = lines.next() {
                break line.unwrap();
            }
        };
        assert_eq!(got, "got");
        send(child.id(), Signal::SIGTERM);
        assert_eq!(code(child), 143);
    }
}

#[test]
fn term_ends_the_engine_and_its_code_is_passed_on() {
    let directory = tempfile::tempdir().unwrap();
    let (child, engine) = sleeping(directory.path());
    send(child.id(), Signal::SIGTERM);
    assert_eq!(code(child), 143);
    assert!(!is_alive(engine));

    let script = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let mut child = sh(script).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    send(child.id(), Signal::SIGTERM);
    assert_eq!(code(child), 7);
}

#[test]
fn what_goes_in_and_out_is_not_touched() {
    let mut child = run(["cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let mut stdin = child.stdin.take().unwrap();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent).unwrap());
    let mut back = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut back).unwrap();
    writer.join().unwrap();
    assert!(back == bytes, "{} bytes came back of {}", back.len(), bytes.len());
    assert_eq!(code(child), 0);

    let ended = finish(&mut sh("echo to stdout; echo to stderr >&2"));
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("to stdout\n", "to stderr\n"));
}

#[test]
fn arguments_are_passed_as_they_are() {
    let arguments: [&[u8]; 9] = [
        b"",
        b" two  words ",
        b"'single' \"double\" \\",
        b"$HOME $(false) `false` * ?",
        b"line\nbreak\ttab",
        b"--socket=/not/ours",
        b"--",
        b"\xff\xfe no UTF-8 \x80",
        "ümläut €".as_bytes(),
    ];
    let mut command = run(["sh", "-c", "printf '%s\\0' \"$@\"", "sh"]);
    command.args(arguments.map(OsStr::from_bytes)).stdout(Stdio::piped());
    let output = command.output().unwrap();
    let expected: Vec<u8> = arguments.iter().flat_map(|one| [*one, b"\0"].concat()).collect();
    assert_eq!(output.stdout, expected);
}

#[test] // proves HOST-9
fn no_file_no_port_and_no_socket_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let (child, _) = sleeping(directory.path());
    let links = fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap();
    let open: Vec<String> = links
        .filter_map(|link| Some(fs::read_link(link.ok()?.path()).ok()?.display().to_string()))
        .collect();
    // Each of its sockets is an end of a pair, so it is in no table of listeners.
    let listening = ["tcp", "tcp6", "unix"].map(|table| {
        fs::read_to_string(format!("/proc/{}/net/{table}", child.id())).unwrap_or_default()
    });
    for inode in open.iter().filter_map(|link| link.strip_prefix("socket:[")?.strip_suffix(']')) {
        for line in listening.iter().flat_map(|table| table.lines()) {
            if line.split_whitespace().any(|word| word == inode) {
                assert!(!line.contains(" 00010000 ") && !line.contains(" 0A "), "{line}");
            }
        }
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    send(child.id(), Signal::SIGTERM);
    assert_eq!(code(child), 143);
}

#[test]
fn it_runs_where_nothing_can_be_written() {
    let ended = finish(run(["true"]).current_dir("/proc").env_clear().env("PATH", "/bin:/usr/bin"));
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", ""));
}

#[test]
fn orphans_become_its_children_and_are_reaped() {
    // The first shell's child ends at once; the manager must adopt that child's own child.
    let script = "sh -c 'sleep 600 & echo $!'; exec sleep 600";
    let mut child = sh(script).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let orphan: u32 = lines.next().unwrap().unwrap().parse().unwrap();
    eventually("the orphan's adoption", || {
        (field(orphan, "PPid") == Some(child.id().into())).then_some(())
    });
    send(orphan, Signal::SIGKILL);
    eventually("the orphan is reaped", || field(orphan, "PPid").is_none().then_some(()));
    let engine = descendants(child.id());
    assert_eq!(engine.len(), 1, "only the engine is left: {engine:?}");
    send(child.id(), Signal::SIGTERM);
    assert_eq!(code(child), 143);
}
