//! One pod: its directories, and the manager in it.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::engine::{Engine, Network};
use super::objects::NAMESPACE;
use super::world::World;

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
        world: &World,
        network: &Network,
        name: &str,
        uid: &str,
    ) -> Result<Self, String> {
        let spawn = || command(engine, world.directory(), network, name, uid)?.spawn();
        let child = spawn().map_err(|error| format!("the manager of {name}: {error}"))?;
        let pid = i32::try_from(child.id()).map_err(|error| error.to_string())?;
        Ok(Self { pid: Pid::from_raw(pid), name: name.to_owned() })
    }

    /// Its process has not ended: what answers is what was started.
    pub(super) fn expect_alive(&self) -> Result<(), String> {
        match waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => Ok(()),
            other => Err(format!("the manager of {} has ended: {other:?}", self.name)),
        }
    }

    /// Ends it as kubelet does.
    pub(super) fn terminate(&self) -> Result<(), String> {
        kill(self.pid, Signal::SIGTERM).map_err(|error| format!("TERM: {error}"))?;
        match waitpid(self.pid, None) {
            Ok(WaitStatus::Exited(_, _)) => Ok(()),
            other => Err(format!("the manager of {} did not exit: {other:?}", self.name)),
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
    // Settings of a stayput or an engine that this shell knows are not meant for this one.
    for (name, _) in std::env::vars_os() {
        let bytes = name.as_bytes();
        if [&b"STAYPUT_"[..], b"ES_", b"OPENSEARCH_"].iter().any(|start| bytes.starts_with(start)) {
            command.env_remove(name);
        }
    }
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
        // A Ctrl-C at the demo is the demo's to handle.
        .process_group(0);
    Ok(command)
}
