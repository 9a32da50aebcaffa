//! The manager's process.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::ground::Ground;
use crate::{ENGINE, MANAGER};

/// How long the manager may take to open its socket.
const START: Duration = Duration::from_secs(10);

/// The manager, running.
pub(crate) struct Manager {
    /// Its process.
    pub(crate) pid: Pid,
}

impl Manager {
    /// Starts the manager, and with it the engine; returns when its socket is open.
    pub(crate) fn start(ground: &Ground) -> Result<Self, String> {
        let spawn = || {
            let log = ground.create_log()?;
            let mut command = Command::new(std::env::current_exe()?);
            command.arg(MANAGER).arg("run");
            for (option, value) in options(ground) {
                command.arg(option).args(value);
            }
            command.arg("--");
            command.arg(std::env::current_exe()?).arg(ENGINE).arg("--config").arg(ground.config());
            // Settings of a stayput or an engine that this shell knows are not meant for this one.
            for (name, _) in std::env::vars_os() {
                let bytes = name.as_bytes();
                if bytes.starts_with(b"STAYPUT_") || bytes.starts_with(b"ES_") {
                    command.env_remove(name);
                }
            }
            command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
            // A Ctrl-C at the demo is the demo's to handle.
            command.process_group(0).spawn()
        };
        let child = spawn().map_err(|error| format!("the manager cannot be started: {error}"))?;
        let pid = i32::try_from(child.id()).map_err(|error| error.to_string())?;
        let manager = Self { pid: Pid::from_raw(pid) };
        manager.wait_for_socket(ground)?;
        Ok(manager)
    }

    /// Ends it as kubelet does; its exit code.
    pub(crate) fn terminate(&self) -> Result<i32, String> {
        kill(self.pid, Signal::SIGTERM).map_err(|error| format!("TERM: {error}"))?;
        match waitpid(self.pid, None) {
            Ok(WaitStatus::Exited(_, code)) => Ok(code),
            Ok(other) => Err(format!("the manager did not exit: {other:?}")),
            Err(error) => Err(format!("the manager cannot be waited for: {error}")),
        }
    }

    /// The one thing that cannot be asked for over the API is that there is an API.
    fn wait_for_socket(&self, ground: &Ground) -> Result<(), String> {
        let deadline = Instant::now() + START;
        while UnixStream::connect(ground.socket()).is_err() {
            if !matches!(waitpid(self.pid, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive))
            {
                return Err("the manager ended at once".to_owned());
            }
            if Instant::now() > deadline {
                return Err(format!("the manager opened no socket within {START:?}"));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// The options of `run`, each with its value if it has one.
pub(crate) fn options(ground: &Ground) -> Vec<(&'static str, Option<String>)> {
    let path = |path: PathBuf| path.display().to_string();
    let (mount, config) = (path(ground.mount()), path(ground.config()));
    vec![
        ("--socket", Some(path(ground.socket()))),
        ("--state-dir", Some(path(ground.state()))),
        ("--config", Some(mount.clone())),
        ("--stage", Some(format!("{mount}={config}"))),
        ("--keep-last-good", None),
        ("--ready", Some(format!("http://127.0.0.1:{}/_cluster/health", ground.engine_port))),
        ("--log-format", Some("text".to_owned())),
    ]
}
