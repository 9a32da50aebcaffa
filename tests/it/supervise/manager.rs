//! One running manager: requests over its socket, signals, and its end as a process.

#![allow(clippy::disallowed_types, reason = "nothing else waits for children in a test")]

use std::fs::{self, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::client::{self, Answer};
use super::processes::{DEADLINE, descendants, eventually, is_alive, state};
use crate::support::programs::send;

/// A manager; when dropped, it and all its descendants are killed.
pub(super) struct Manager {
    child: Child,
    socket: PathBuf,
    log: PathBuf,
}

impl Manager {
    /// Starts it; its stderr is added to `log`.
    pub(super) fn spawn(command: &mut Command, socket: &Path, log: &Path) -> Self {
        let stderr = OpenOptions::new().create(true).append(true).open(log).expect("a log file");
        Self::spawn_with(command, stderr, socket, log)
    }

    /// Starts it with this stderr.
    pub(super) fn spawn_with(
        command: &mut Command,
        stderr: impl Into<Stdio>,
        socket: &Path,
        log: &Path,
    ) -> Self {
        let child = command.stderr(stderr).spawn().expect("stayput can be executed");
        Self { child, socket: socket.to_owned(), log: log.to_owned() }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The stderr of the manager and its engine.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The port of 127.0.0.1 that its log says it listens at. The log may be written after an answer.
    pub(super) fn port(&self) -> u16 {
        eventually("it says where it listens", || {
            let log = self.log();
            let (_, after) = log.split_once("address=127.0.0.1:")?;
            let (digits, _) = after.split_once(|next: char| !next.is_ascii_digit())?;
            Some(digits.parse().expect("a port"))
        })
    }

    /// Waits until its log has this text.
    pub(super) fn until_logged(&self, text: &str) {
        eventually(&format!("{text} is in the log: {}", self.log()), || {
            self.log().contains(text).then_some(())
        });
    }

    /// Waits until its log has this text so many times.
    pub(super) fn until_logged_times(&self, text: &str, times: usize) {
        eventually(&format!("{text} is in the log {times} times: {}", self.log()), || {
            (self.log().matches(text).count() == times).then_some(())
        });
    }

    /// Sends a request as soon as the socket exists.
    pub(super) fn ask(&self, method: &str, target: &str, body: &str) -> Answer {
        eventually(&format!("an answer to {method} {target}: {}", self.log()), || {
            // It stays a zombie until this test waits for it.
            assert_ne!(state(self.pid()), Some('Z'), "it has ended: {}", self.log());
            client::ask(&self.socket, method, target, body).ok()
        })
    }

    pub(super) fn post(&self, target: &str, body: &str) -> Answer {
        // Only once: a second attempt would be another request.
        client::ask(&self.socket, "POST", target, body)
            .unwrap_or_else(|error| panic!("POST {target}: {error}\n{}", self.log()))
    }

    pub(super) fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, "")
    }

    pub(super) fn status(&self) -> Value {
        self.get("/es/status").body
    }

    /// Follows the status until `wanted` is true.
    pub(super) fn until(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + DEADLINE;
        let mut status = self.status();
        while !wanted(&status) {
            assert!(Instant::now() < until, "not {what}: {status:#}\n{}", self.log());
            let cursor = status["cursor"].as_str().expect("a cursor").to_owned();
            let next = self.get(&format!("/es/status?after={cursor}&timeout=2s"));
            if next.code == 200 {
                status = next.body;
            }
        }
        status
    }

    /// Follows the status until the engine is in this state.
    pub(super) fn until_state(&self, state: &str) -> Value {
        self.until(state, |status| status["state"] == state)
    }

    /// Pid of the running engine's leader.
    pub(super) fn engine(&self) -> u32 {
        let status = self.until("an engine", |status| status["run"]["pid"].is_u64());
        u32::try_from(status["run"]["pid"].as_u64().expect("a pid")).expect("a pid")
    }

    pub(super) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Waits for its end: the exit code, 128 + signal if a signal ended it.
    pub(super) fn ended(&mut self) -> i32 {
        let log = self.log.clone();
        let status = eventually("the manager's end", || {
            self.child.try_wait().unwrap_or_else(|error| panic!("{error}: {log:?}"))
        });
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|ended| ended.is_some())
    }

    /// [`Self::crash`], unless it has ended by itself.
    pub(super) fn crash_if_alive(mut self) {
        if !self.has_ended() {
            self.crash();
        }
    }

    /// Kills it as a crash would, and returns when it and its engine's leader are gone.
    pub(super) fn crash(mut self) {
        let below = descendants(self.pid());
        self.signal(Signal::SIGKILL);
        assert_eq!(self.ended(), 137);
        // The kernel ends the leader with the manager; the end of a container would also end the
        // rest.
        below.iter().for_each(|&pid| send(pid, Signal::SIGKILL));
        eventually("the engine's end", || (!below.iter().any(|&pid| is_alive(pid))).then_some(()));
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        if self.has_ended() {
            return;
        }
        let below = descendants(self.pid());
        self.signal(Signal::SIGKILL);
        let _ = self.child.wait();
        below.iter().for_each(|&pid| send(pid, Signal::SIGKILL));
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
    }
}
