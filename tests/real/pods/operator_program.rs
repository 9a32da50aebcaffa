//! The program of an operator, as a process on this machine that finds the engines by their names.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::hosts::Hosts;
use crate::support::kubernetes::process::Process;

/// A program that runs, or was killed; it ends when this is dropped.
pub(super) struct OperatorProgram {
    process: Option<Process>,
    name: &'static str,
    line: Vec<String>,
    _hosts: Hosts,
    directory: TempDir,
}

impl OperatorProgram {
    /// Starts `line`, which may begin with variables. There is no DNS: `host` says by which name it reaches a pod.
    pub(super) fn start(
        name: &'static str,
        kubeconfig: &Path,
        host: fn(&Value) -> Option<String>,
        line: &[&str],
    ) -> Self {
        let directory = tempfile::tempdir().expect("a temp dir");
        let hosts = directory.path().join("hosts");
        // In a mount namespace of its own it reads the addresses in this file.
        let mount = "mount --bind \"$0\" /etc/hosts && exec env \"$@\"";
        let first = ["unshare", "--mount", "sh", "-c", mount, hosts.to_str().expect("UTF-8")];
        let line = first.iter().chain(line).map(|word| (*word).to_owned()).collect();
        let names = Hosts::write(&hosts, kubeconfig, host);
        let mut program = Self { process: None, name, line, _hosts: names, directory };
        program.start_again();
        program
    }

    /// Starts it after it was killed.
    pub(super) fn start_again(&mut self) {
        self.start_with(&[]);
    }

    /// Starts it after it was killed, with these options, too.
    pub(super) fn start_with(&mut self, options: &[&str]) {
        let options = options.iter().map(|option| (*option).to_owned());
        let line: Vec<String> = self.line.iter().cloned().chain(options).collect();
        self.process = Some(Process::start(self.name, self.directory.path(), &line));
    }

    /// Sends KILL, and waits for its end.
    pub(super) fn kill(&mut self) {
        self.process = None;
    }
}
