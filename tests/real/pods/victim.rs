//! Programs in the containers of nodes that are killed.

use std::fs;

use nix::sys::signal::Signal;

use super::fixture::Fixture;
use super::phases::shown;
use crate::support::namespace_processes::{NamespaceProcess, namespace_processes};
use crate::support::wait::eventually_briefly;

/// Who is killed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Victim {
    Engine,
    Manager,
}

impl Victim {
    /// Kills it in the first node that shows this phase, and is not the one that is left out; returns
    /// its name.
    pub(super) fn kill_in_phase(
        self,
        fixture: &Fixture,
        phase: &str,
        left_out: Option<&str>,
    ) -> String {
        eventually_briefly(&format!("{phase} of a node"), || {
            let shown = shown(fixture);
            let mut nodes = shown.iter().filter(|pod| pod["name"].as_str() != left_out);
            let node = nodes.find(|pod| pod["phase"] == phase)?;
            let name = node["name"].as_str()?.to_owned();
            self.kill(node["container"].as_str()?).then_some(name)
        })
    }

    /// Kills it in this pod.
    pub(super) fn kill_in_pod(self, fixture: &Fixture, pod: &str) {
        let path = "jsonpath={.status.containerStatuses[0].containerID}";
        let container = fixture.run(&["get", "pod", pod, "--output", path]);
        assert!(self.kill(&container), "there is no {self:?} in {pod}");
    }

    /// Sends KILL to it in the container with this id; returns whether there is such a process. Of the
    /// two processes of Elasticsearch the server was started last.
    fn kill(self, container: &str) -> bool {
        let id = container.rsplit('/').next().expect("an id");
        let processes = processes_of(id);
        let victim = processes.iter().rfind(|one| match self {
            Self::Manager => one.pid == 1 && one.state != 'Z',
            Self::Engine => one.pid != 1 && one.state != 'Z',
        });
        victim.is_some_and(|victim| victim.try_signal(Signal::SIGKILL))
    }
}

/// The processes of a container, by their pids in it.
pub(super) fn processes_of(id: &str) -> Vec<NamespaceProcess> {
    let mut pids = fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let is_in = |pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|groups| groups.contains(id))
    };
    pids.find(is_in).map(namespace_processes).unwrap_or_default()
}
