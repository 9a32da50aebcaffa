//! The kernel's side of a node: namespaces for processes, mounts and network around an idle first
//! process. When that ends, for any reason, the kernel ends and removes everything in them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::pki::text;
use super::process::Process;
use super::resources::{make_groups, remove_groups};

const NODE_START_TIMEOUT: Duration = Duration::from_secs(30);
/// If `unshare` is killed, its child is killed, too.
const UNSHARE: [&str; 7] =
    ["unshare", "--pid", "--mount", "--net", "--fork", "--kill-child", "--mount-proc"];

/// A node's namespaces, and the control groups of its containers; all gone when dropped.
#[derive(Debug)]
pub(crate) struct Node {
    /// `unshare`, which ends when the first process ends.
    outer: Process,
    /// The first process, by its pid here.
    init: i32,
    /// The name of its directory.
    name: String,
}

impl Node {
    /// `Err` is the reason why it cannot be done here.
    pub(crate) fn new(directory: &Path, pause: &Path) -> Result<Self, String> {
        let attempt = Command::new(UNSHARE[0]).args(&UNSHARE[1..]).arg("true").output();
        let attempt = attempt.map_err(|error| format!("{}: {error}", UNSHARE[0]))?;
        if !attempt.status.success() {
            return Err(String::from_utf8_lossy(&attempt.stderr).trim().replace('\n', "; "));
        }
        // The directories that kubelet and runtime write to, whatever their own directories are.
        let script = "set -e
            mkdir -p /var/lib/kubelet
            for place in /run /var/log /var/lib/kubelet; do
                mount -t tmpfs -o mode=755 stayput-kube $place
            done
            echo 1 >/proc/sys/net/ipv4/ip_forward
            exec \"$1\"";
        let line = [&UNSHARE[..], &["sh", "-c", script, "node", text(pause)]].concat();
        let mut outer = Process::start("node", directory, &line);
        let pid = outer.pid();
        let init = outer.until("its first process runs", NODE_START_TIMEOUT, || {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
            let init: i32 = children.split_whitespace().next()?.parse().ok()?;
            let runs = fs::read_link(format!("/proc/{init}/exe")).ok()?;
            (runs.file_name() == pause.file_name()).then_some(init)
        });
        let name = directory.file_name().expect("a name").to_str().expect("UTF-8").to_owned();
        let node = Self { outer, init, name };
        make_groups(&node.name).map_err(|error| format!("control groups: {error}"))?;
        Ok(node)
    }

    /// The first process, by its pid here; its namespaces are the node's.
    pub(crate) const fn init(&self) -> i32 {
        self.init
    }

    /// The name of its control group, below which its containers must be, and of all that is
    /// marked.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs a daemon in the node; it ends with the guard or the node.
    pub(crate) fn start(&self, name: &str, logs: &Path, line: &[String]) -> Process {
        let target = self.init.to_string();
        let enter = ["nsenter", "--target", &target, "--pid", "--mount", "--net", "--"];
        // nsenter stays outside, as the parent of the process inside.
        let tied = ["setpriv", "--pdeathsig=KILL", "--"];
        let line = enter.iter().chain(&tied).copied().chain(line.iter().map(String::as_str));
        Process::start(name, logs, &line.collect::<Vec<_>>())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.init), Signal::SIGKILL);
        // The first process can only be waited for when all others are gone.
        self.outer.wait();
        remove_groups(&self.name);
    }
}
