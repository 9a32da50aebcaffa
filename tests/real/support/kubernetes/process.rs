//! Daemons of the tests: each writes a log, and is ended when its guard is dropped or, if the test
//! is killed, by the kernel.

#![allow(clippy::disallowed_types, reason = "nothing else waits for children in a test")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A running daemon; ended, and waited for, when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `line`; its output goes to the end of `NAME.log` in `logs`.
    pub(crate) fn start<S: AsRef<OsStr>>(name: &str, logs: &Path, line: &[S]) -> Self {
        let log = logs.join(format!("{name}.log"));
        let out = File::options().create(true).append(true).open(&log).expect("a log");
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig=KILL", "--"])
            .args(line)
            // Those in Go collect garbage less often, and need more memory for that.
            .env("GOGC", "400")
            .stdin(Stdio::null())
            .stdout(out.try_clone().expect("a descriptor"))
            .stderr(out);
        Self { name: name.to_owned(), child: spawn(command), log }
    }

    /// Calls `poll` until it returns something. Fails, with the end of the log, if the daemon ends
    /// before, or after `timeout`.
    #[track_caller]
    pub(crate) fn until<T>(
        &mut self,
        what: &str,
        timeout: Duration,
        mut poll: impl FnMut() -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(seen) = poll() {
                return seen;
            }
            let ended = self.child.try_wait().expect("it is ours");
            let (name, tail) = (&self.name, || self.tail());
            assert_eq!(ended, None, "{name} ended before {what}; its log ends:\n{}", tail());
            assert!(Instant::now() < deadline, "not in time: {what}; {name} says:\n{}", tail());
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // Not yet waited for, so the pid is still its own.
        let _ = kill(Pid::from_raw(self.pid()), signal);
    }

    /// Waits until it has ended by itself.
    pub(crate) fn wait(&mut self) {
        let _ = self.child.wait();
    }

    /// Sends KILL, and waits for its end.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn tail(&self) -> String {
        let text = String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(20)..];
        last.iter().map(|line| line.chars().take(300).collect::<String>() + "\n").collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("the log of {}:\n{}", self.name, self.tail());
        }
        // None of its data is needed, and an apiserver takes long to end by itself.
        self.kill();
    }
}

/// Spawned by a thread that lives as long as the test binary. The kernel sends the signal at the
/// death of the thread that spawned, and a test's thread ends with the test, which may have passed
/// its daemons on.
fn spawn(command: Command) -> Child {
    type Order = (Command, Sender<std::io::Result<Child>>);
    static SPAWNER: OnceLock<Mutex<Sender<Order>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (orders, taken) = channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in taken {
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(orders)
    });
    let (answer, child) = channel();
    let orders = spawner.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    orders.send((command, answer)).expect("the spawner stays");
    child.recv().expect("the spawner answers").expect("setpriv can be executed")
}
