//! The stand-in engine for tests: its config directory, its process, its HTTP interface.

#![allow(clippy::disallowed_types, reason = "nothing else waits for children in a test")]

use std::fs;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// A program of `examples/`, which `cargo test` builds unless only some targets are named.
pub(crate) fn example(name: &str) -> PathBuf {
    let this = std::env::current_exe().expect("a test knows its own program");
    let path = this.ancestors().nth(2).expect("target/PROFILE/deps/it").join("examples").join(name);
    assert!(path.exists(), "{path:?} is missing: run `cargo build --example {name}` first");
    path
}

/// A config directory and a data path.
pub(crate) struct StandIn {
    directory: TempDir,
}

impl StandIn {
    /// Directories with a config of just `settings`, on a free port.
    pub(crate) fn new(settings: &str) -> Self {
        let standin = Self { directory: tempfile::tempdir().expect("a temp dir") };
        fs::create_dir(standin.config()).expect("a config directory");
        standin.configure(settings);
        standin
    }

    /// Replaces the config. A free port is taken unless `settings` say otherwise.
    pub(crate) fn configure(&self, settings: &str) {
        let data = self.directory.path().join("data");
        let text = format!("http.port: 0\npath.data: {}\n{settings}\n", data.display());
        fs::write(self.config().join("elasticsearch.yml"), text).expect("elasticsearch.yml");
    }

    /// The config directory.
    pub(crate) fn config(&self) -> PathBuf {
        self.directory.path().join("config")
    }

    /// The command that starts the engine.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(example("standin-engine"));
        command.arg("--config").arg(self.config()).stdin(Stdio::null());
        command
    }

    /// Starts the engine.
    pub(crate) fn start(&self) -> Engine {
        Engine::spawn(&mut self.command())
    }

    /// Starts the engine and returns when it is ready, with its port.
    pub(crate) fn start_ready(&self) -> (Engine, u16) {
        let mut engine = self.start();
        let port = engine.port();
        engine.expect_line("started");
        (engine, port)
    }

    /// Starts an engine that does not come up: its exit code and what it said on stderr.
    pub(crate) fn fail(&self) -> (Option<i32>, String) {
        let done = self.command().output().expect("the stand-in starts");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    }
}

/// A running engine; killed when dropped.
pub(crate) struct Engine {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Engine {
    /// Starts `command` with its stdout in our hands.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the stand-in starts");
        let stdout = child.stdout.take().expect("stdout is piped");
        Self { child, lines: BufReader::new(stdout).lines() }
    }

    /// Pid of the leader.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads stdout up to the first line that contains `part`.
    pub(crate) fn expect_line(&mut self, part: &str) -> String {
        self.lines
            .by_ref()
            .map(|line| line.expect("a line of text"))
            .find(|line| line.contains(part))
            .unwrap_or_else(|| panic!("the engine ended without saying {part:?}"))
    }

    /// Returns when no process of the engine holds its stdout any more.
    pub(crate) fn expect_silence(&mut self) {
        self.lines.by_ref().for_each(drop);
    }

    /// The port it says it listens on.
    pub(crate) fn port(&mut self) -> u16 {
        let line = self.expect_line("publish_address");
        let port = line.rsplit(':').next().map(|rest| rest.trim_end_matches('}'));
        port.and_then(|port| port.parse().ok()).expect("publish_address {HOST:PORT}")
    }

    /// Sends a signal to the leader.
    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Waits for the leader; its exit code, 128 + signal if a signal ended it.
    pub(crate) fn wait(&mut self) -> i32 {
        let status = self.child.wait().expect("our own child");
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    }

    /// Pids of the leader's living children.
    pub(crate) fn children(&self) -> Vec<u32> {
        children(self.pid())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        for child in self.children() {
            send(child, Signal::SIGKILL);
        }
        // A child that was waited for already is left alone by the standard library.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process that a test started.
pub(crate) fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid"));
    // It may be gone by now, which is as good.
    let _ = kill(pid, signal);
}

/// Pids of the children of `pid`, dead ones that nobody waited for included.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// The command line of `pid`, its arguments separated by spaces.
pub(crate) fn command_line(pid: u32) -> String {
    let line = fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline"));
    String::from_utf8_lossy(&line.unwrap_or_default()).replace('\0', " ")
}

/// `GET path` at the engine: status and body.
pub(crate) fn get(port: u16, path: &str) -> (u16, Value) {
    ask(port, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
}

/// `PUT path` at the engine: status and body.
pub(crate) fn put(port: u16, path: &str, body: &str) -> (u16, Value) {
    let length = body.len();
    ask(port, &format!("PUT {path} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}"))
}

fn ask(port: u16, request: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the engine listens");
    stream.write_all(request.as_bytes()).expect("the request is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer in UTF-8");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status.expect("a status line"), serde_json::from_str(body).expect("a JSON body"))
}
