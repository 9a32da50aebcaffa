//! Programs in a container that are killed.

use std::fs;

use nix::sys::signal::Signal;

use crate::support::namespace_processes::{NamespaceProcess, namespace_processes};

/// Who is killed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Victim {
    Engine,
    Manager,
}

impl Victim {
    /// Sends KILL to it in the container with this id; whether there was such a process.
    pub(super) fn kill(self, container: &str) -> bool {
        let id = container.rsplit('/').next().expect("an id");
        let processes = processes_of(id);
        let victim = processes.iter().find(|one| match self {
            Self::Manager => one.pid == 1 && one.state != 'Z',
            Self::Engine => one.pid != 1 && one.state != 'Z',
        });
        if let Some(victim) = victim {
            victim.signal(Signal::SIGKILL);
        }
        victim.is_some()
    }
}

/// The processes of a container.
fn processes_of(id: &str) -> Vec<NamespaceProcess> {
    let mut pids = fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let is_in = |pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|groups| groups.contains(id))
    };
    pids.find(is_in).map(namespace_processes).unwrap_or_default()
}
