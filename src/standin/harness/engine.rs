//! A stand-in engine: its config directory, its process, its HTTP interface.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::http::exchange_text;
use super::programs::{children, program, send};

/// A config directory and a data path.
#[derive(Debug)]
pub struct StandIn {
    directory: TempDir,
}

impl StandIn {
    /// Directories with a config of only `settings`, on a free port.
    pub fn new(settings: &str) -> Self {
        let standin = Self { directory: tempfile::tempdir().expect("a temp dir") };
        fs::create_dir(standin.config()).expect("a config directory");
        standin.configure(settings);
        standin
    }

    /// Replaces the config. Uses a free port unless `settings` contain one.
    pub fn configure(&self, settings: &str) {
        let data = self.directory.path().join("data");
        let text = format!("http.port: 0\npath.data: {}\n{settings}\n", data.display());
        fs::write(self.config().join("elasticsearch.yml"), text).expect("elasticsearch.yml");
    }

    /// The config directory.
    pub fn config(&self) -> PathBuf {
        self.directory.path().join("config")
    }

    /// The command that starts the engine.
    pub fn command(&self) -> Command {
        let mut command = Command::new(program("standin-engine"));
        command.arg("--config").arg(self.config()).stdin(Stdio::null());
        command
    }

    /// Starts the engine.
    pub fn start(&self) -> Engine {
        Engine::spawn(&mut self.command())
    }

    /// Starts the engine and returns when it is ready, with its port.
    pub fn start_ready(&self) -> (Engine, u16) {
        let mut engine = self.start();
        let port = engine.port();
        engine.expect_line("started");
        (engine, port)
    }

    /// Starts an engine that fails to start; returns its exit code and its stderr.
    pub fn fail(&self) -> (Option<i32>, String) {
        let done = self.command().output().expect("the stand-in starts");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    }
}

/// A running engine; killed when dropped.
#[derive(Debug)]
pub struct Engine {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Engine {
    /// Starts `command` and reads its stdout.
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the stand-in starts");
        let stdout = child.stdout.take().expect("stdout is piped");
        Self { child, lines: BufReader::new(stdout).lines() }
    }

    /// Pid of the leader.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads stdout up to the first line that contains `part`.
    pub fn expect_line(&mut self, part: &str) -> String {
        self.lines
            .by_ref()
            .map(|line| line.expect("a line of text"))
            .find(|line| line.contains(part))
            .unwrap_or_else(|| panic!("the engine ended and never printed {part:?}"))
    }

    /// Returns when no process of the engine has its stdout open any more.
    pub fn expect_silence(&mut self) {
        self.lines.by_ref().for_each(drop);
    }

    /// The port that it prints when it listens.
    pub fn port(&mut self) -> u16 {
        let line = self.expect_line("publish_address");
        let port = line.rsplit(':').next().map(|rest| rest.trim_end_matches('}'));
        port.and_then(|port| port.parse().ok()).expect("publish_address {HOST:PORT}")
    }

    /// Sends a signal to the leader.
    pub fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Waits for the leader; its exit code, 128 + signal if a signal ended it.
    pub fn wait(&mut self) -> i32 {
        let status = self.child.wait().expect("our own child");
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    }

    /// Pids of the leader's living children.
    pub fn children(&self) -> Vec<u32> {
        children(self.pid())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        for child in self.children() {
            send(child, Signal::SIGKILL);
        }
        // If the child was waited for already, the standard library sends no signal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `GET path` at the engine: status and body.
pub fn get(port: u16, path: &str) -> (u16, Value) {
    ask(port, ("GET", path), "")
}

/// `PUT path` at the engine: status and body.
pub fn put(port: u16, path: &str, body: &str) -> (u16, Value) {
    ask(port, ("PUT", path), body)
}

fn ask(port: u16, request: (&str, &str), body: &str) -> (u16, Value) {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("the engine listens");
    let answer = exchange_text(stream, request, body).expect("an answer");
    (answer.status, answer.body)
}
