//! The processes of a PID namespace, seen from outside, with their pids inside and outside.

use std::fs;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A process of the namespace.
#[derive(Debug, Clone)]
pub(crate) struct NamespaceProcess {
    /// Its pid here.
    pub(crate) host: i32,
    /// Its pid in the namespace.
    pub(crate) pid: i32,
    /// `R`, `S`, `D`, `Z`…
    pub(crate) state: char,
    /// Its arguments with spaces between them; empty for a zombie.
    pub(crate) command: String,
}

impl NamespaceProcess {
    pub(crate) fn signal(&self, signal: Signal) {
        assert!(self.try_signal(signal), "the process is there");
    }

    /// Returns false if the process is gone.
    pub(crate) fn try_signal(&self, signal: Signal) -> bool {
        match kill(Pid::from_raw(self.host), signal) {
            Ok(()) => true,
            Err(Errno::ESRCH) => false,
            Err(error) => panic!("{signal}: {error}"),
        }
    }
}

/// All processes in the PID namespace of the process `init`, with zombies.
pub(crate) fn namespace_processes(init: i32) -> Vec<NamespaceProcess> {
    let namespace = |pid: i32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let Some(theirs) = namespace(init) else { return vec![] };
    let mut guests: Vec<NamespaceProcess> = fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| is_in(*pid, &theirs, namespace(*pid).as_ref()))
        .filter_map(read)
        .collect();
    guests.sort_by_key(|guest| guest.pid);
    guests
}

/// A zombie has no namespace link any more, but its parent has one.
fn is_in(pid: i32, theirs: &Path, its: Option<&PathBuf>) -> bool {
    match its {
        Some(its) => its == theirs,
        None => parent(pid).is_some_and(|parent| {
            fs::read_link(format!("/proc/{parent}/ns/pid")).is_ok_and(|link| link == theirs)
        }),
    }
}

fn parent(pid: i32) -> Option<i32> {
    field(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "PPid:")?.parse().ok()
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn read(host: i32) -> Option<NamespaceProcess> {
    let status = fs::read_to_string(format!("/proc/{host}/status")).ok()?;
    let pid = field(&status, "NSpid:")?.split_whitespace().last()?.parse().ok()?;
    let state = field(&status, "State:")?.chars().next()?;
    // The arguments of a process in D may not be readable, and reading them may hang.
    let command = match state {
        'D' => field(&status, "Name:")?.to_owned(),
        _ => fs::read_to_string(format!("/proc/{host}/cmdline")).ok()?.replace('\0', " "),
    };
    Some(NamespaceProcess { host, pid, state, command })
}
