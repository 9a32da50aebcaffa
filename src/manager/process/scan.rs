//! The result of a scan of a run's processes.

use std::time::Duration;

use super::command_line::CommandLine;
use super::procfs::{self, Process};
use super::reaper::{self, Children};
use crate::worker::Worker;

/// A live process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub pid: u32,
    /// Program, and script or main class; no other arguments, which may be secret.
    pub command: String,
    /// True for a JVM: QUIT makes it print its threads.
    pub jvm: bool,
    /// True for the engine's server JVM, which holds `node.lock`.
    pub server_jvm: bool,
    /// True in an uninterruptible wait (D): KILL does not end the process before the wait ends.
    pub uninterruptible: bool,
    pub(super) started: u64,
}

/// The live processes of a run, and other children of the manager.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// The process that was launched, while it lives.
    pub leader: Option<Member>,
    /// The run's server JVMs other than the leader.
    pub server: Vec<Member>,
    /// All other processes of the run.
    pub stragglers: Vec<Member>,
    /// Adopted orphans that do not belong to the run. Never signalled.
    pub strangers: Vec<Member>,
    /// Reason why it is not certain that no process is left, and what to do: the kernel reports
    /// children that could not be read. Not set if the kernel reports that no child is left.
    pub unseen: Option<String>,
    /// True if no process of the run was found, but a child has ended and is not reaped yet. That child may
    /// have forked while `/proc` was read, and until it is reaped the kernel reports nothing about children
    /// that `/proc` may hide. Reap and scan again; the child's SIGCHLD is still to come.
    pub unreaped: bool,
}

impl Scan {
    /// True if it is certain that no process of the run lives.
    pub fn is_empty(&self) -> bool {
        self.shows_none() && self.unseen.is_none() && !self.unreaped
    }

    /// True if no process of the run was found.
    pub(super) fn shows_none(&self) -> bool {
        self.members().next().is_none()
    }

    /// Asks the kernel whether a child may live that was not found; `why` says why it was not.
    pub(super) fn ask_for_others(&mut self, why: &str) {
        match reaper::children() {
            Children::None => {}
            Children::Ended => self.unreaped = true,
            Children::Alive => self.unseen = Some(why.to_owned()),
        }
    }

    /// Every live process of the run, the leader first.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.leader.iter().chain(&self.server).chain(&self.stragglers)
    }
}

impl Member {
    pub(super) fn new(process: &Process, command: CommandLine) -> Self {
        let CommandLine { shown, jvm, server_jvm } = command;
        Self {
            pid: process.pid,
            command: shown,
            jvm,
            server_jvm,
            uninterruptible: process.uninterruptible,
            started: process.started,
        }
    }
}

/// How long reading from a process may take. Usually it takes some microseconds.
const READ_TIMEOUT: Duration = Duration::from_millis(100);

/// Reads from a process's own memory: its arguments or its environment. That waits as long as the process
/// holds its memory's lock, and for a disk that its memory is mapped from. `None` if it takes too long.
pub(super) fn read_within<T: Send + 'static>(
    reader: Option<&Worker>,
    read: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    match reader {
        Some(reader) => reader.run_within(READ_TIMEOUT, read),
        None => Some(read()),
    }
}

/// Reads kind and name of a process from its arguments.
pub(super) fn read_command(process: &Process, reader: Option<&Worker>) -> CommandLine {
    let pid = process.pid;
    // Reading the arguments of a process that waits for a disk may wait, too.
    let arguments = if process.uninterruptible {
        None
    } else {
        read_within(reader, move || procfs::command_line(pid))
    };
    let arguments = arguments.unwrap_or_default();
    CommandLine::parse(&arguments, &process.name)
}
