//! The part of a pod that outlives a manager: state directory, config, sockets, log.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;

use super::gate::Gate;
use super::manager::Manager;
use super::processes::eventually;
use crate::support::program::stayput;

/// The volumes, and the readiness endpoint of the engine in it.
pub(super) struct Pod {
    directory: TempDir,
    pub(super) gate: Gate,
}

impl Pod {
    /// A pod whose engine is ready at the first call of the probe.
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temp dir");
        for name in ["state", "config", "staged", "tmp"] {
            fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        Self { directory, gate: Gate::new(true) }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.path("stayput.sock")
    }

    /// The content of a file of the pod; empty if it does not exist.
    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(super) fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).expect("a file in the pod");
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.path("state/journal.json")
    }

    /// `stayput run` with an API, a state directory and the gate as readiness probe.
    pub(super) fn command<S: AsRef<OsStr>>(&self, options: &[S], engine: &[&str]) -> Command {
        let mut command = stayput(["run", "--log-format", "text", "--log-level", "debug"]);
        command.arg("--socket").arg(self.socket()).arg("--state-dir").arg(self.path("state"));
        command.arg("--ready").arg(self.gate.url());
        command.args(options).arg("--").args(engine).current_dir(self.directory.path());
        command
    }

    /// Starts a manager.
    pub(super) fn start<S: AsRef<OsStr>>(&self, options: &[S], engine: &[&str]) -> Manager {
        self.spawn(&mut self.command(options, engine))
    }

    /// Starts a manager with an engine that ends on the stop signal.
    pub(super) fn start_sleeper(&self) -> Manager {
        self.start::<&str>(&[], &["sleep", "600"])
    }

    /// Starts a manager with an engine that ignores TERM; returns when it does.
    pub(super) fn start_deaf(&self, options: &[&str]) -> Manager {
        let script = "rm -f deaf; trap '' TERM; touch deaf; exec sleep 600";
        let manager = self.start(options, &["sh", "-c", script]);
        manager.until_state("running");
        eventually("an engine that ignores TERM", || self.path("deaf").exists().then_some(()));
        manager
    }

    /// Starts a manager whose engine exits on [`Self::exit`].
    pub(super) fn start_obedient(&self, options: &[&str]) -> Manager {
        let path = self.path("order");
        if !path.exists() {
            mkfifo(&path, Mode::S_IRWXU).expect("a fifo");
        }
        self.start(options, &["sh", "-c", "echo run >>runs; read code <order; exit $code"])
    }

    /// Makes the obedient engine exit, as soon as it reads.
    pub(super) fn exit(&self, code: i32) {
        self.write("order", &format!("{code}\n"));
    }

    /// How many runs the obedient engine has had.
    pub(super) fn runs(&self) -> usize {
        self.read("runs").lines().count()
    }

    /// Starts what is, or becomes, a manager of this pod.
    pub(super) fn spawn(&self, command: &mut Command) -> Manager {
        Manager::spawn(command, &self.socket(), &self.path("manager.log"))
    }

    /// The same with this stderr.
    pub(super) fn spawn_with(&self, command: &mut Command, stderr: impl Into<Stdio>) -> Manager {
        Manager::spawn_with(command, stderr, &self.socket(), &self.path("manager.log"))
    }

    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }
}
