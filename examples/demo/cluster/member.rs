//! One pod: its directories, and the manager in it.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use stayput_standin::harness::programs;

use super::engine::{Engine, Network};
use super::kubernetes::Kubernetes;
use super::objects::NAMESPACE;
use crate::error::{Context, Result};

/// The directories of a pod.
pub(super) const DIRECTORIES: [&str; 6] = ["state", "mount", "staged", "data", "logs", "tmp"];

/// A manager that runs.
pub(super) struct Member {
    pub(super) pid: Pid,
    name: String,
}

impl Member {
    /// Starts the manager, and with it the engine.
    pub(super) fn start(
        engine: &Engine,
        kubernetes: &Kubernetes,
        network: &Network,
        name: &str,
        uid: &str,
    ) -> Result<Self> {
        let spawn = || command(engine, kubernetes.directory(), network, name, uid)?.spawn();
        let child = spawn().context(format!("the manager of {name}"))?;
        let pid = i32::try_from(child.id()).context("the pid")?;
        Ok(Self { pid: Pid::from_raw(pid), name: name.to_owned() })
    }

    /// Its process has not ended, so this process answers.
    pub(super) fn expect_alive(&self) -> Result<()> {
        match waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => Ok(()),
            other => Err(format!("the manager of {} has ended: {other:?}", self.name).into()),
        }
    }

    /// Ends it as the kubelet does.
    pub(super) fn terminate(&self) -> Result<()> {
        kill(self.pid, Signal::SIGTERM).context("TERM")?;
        match waitpid(self.pid, None) {
            Ok(WaitStatus::Exited(_, _)) => Ok(()),
            other => Err(format!("the manager of {} did not exit: {other:?}", self.name).into()),
        }
    }
}

fn command(
    engine: &Engine,
    directory: &Path,
    network: &Network,
    name: &str,
    uid: &str,
) -> std::io::Result<Command> {
    let own = directory.join(name);
    let (mount, staged) = (own.join("mount"), own.join("staged"));
    let host = Network::address(name);
    let log = File::create(own.join("log"))?;
    let mut command = Command::new(std::env::current_exe()?);
    programs::without_settings(&mut command);
    command
        .args([crate::MANAGER, "run", "--log-format", "text", "--keep-last-good"])
        .arg("--listen")
        .arg(format!("{host}:{}", network.manager))
        .arg("--tls-cert")
        .arg(directory.join("tls.crt"))
        .arg("--tls-key")
        .arg(directory.join("tls.key"))
        .arg("--jwt-key")
        .arg(directory.join("jwt.key"))
        .arg("--config")
        .arg(&mount)
        .arg("--stage")
        .arg(format!("{}={}", mount.display(), staged.display()))
        .arg("--state-dir")
        .arg(own.join("state"))
        .arg("--tmp-dir")
        .arg(own.join("tmp"))
        .arg("--ready")
        .arg(format!("http://{host}:{}/_cluster/health?timeout=500ms", network.http))
        .arg("--")
        .args(engine.command(&staged)?)
        .envs(engine.variables(&staged))
        .env("STAYPUT_POD_NAMESPACE", NAMESPACE)
        .env("STAYPUT_POD_NAME", name)
        .env("STAYPUT_POD_UID", uid)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        // Ctrl-C is handled by the demo alone.
        .process_group(0);
    Ok(command)
}
