//! The manager's process.

use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use stayput_standin::harness::programs;

use crate::error::{Context, Result};
use crate::files::PodFiles;
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
    pub(crate) fn start(files: &PodFiles) -> Result<Self> {
        let spawn = || {
            let log = files.create_log()?;
            let mut command = Command::new(std::env::current_exe()?);
            command.arg(MANAGER).arg("run");
            for (option, value) in options(files) {
                command.arg(option).args(value);
            }
            command.arg("--");
            command.arg(std::env::current_exe()?).arg(ENGINE).arg("--config").arg(files.config());
            programs::without_settings(&mut command);
            command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
            // Ctrl-C is handled by the demo alone.
            command.process_group(0).spawn()
        };
        let child = spawn().context("the manager cannot be started")?;
        let pid = i32::try_from(child.id()).context("the pid")?;
        let manager = Self { pid: Pid::from_raw(pid) };
        manager.wait_for_socket(files)?;
        Ok(manager)
    }

    /// Ends it as the kubelet does; returns its exit code.
    pub(crate) fn terminate(&self) -> Result<i32> {
        kill(self.pid, Signal::SIGTERM).context("TERM")?;
        match waitpid(self.pid, None) {
            Ok(WaitStatus::Exited(_, code)) => Ok(code),
            Ok(other) => Err(format!("the manager did not exit: {other:?}").into()),
            Err(error) => Err(format!("the manager cannot be waited for: {error}").into()),
        }
    }

    /// Waits for the socket; the API cannot be asked before it exists.
    fn wait_for_socket(&self, files: &PodFiles) -> Result<()> {
        let deadline = Instant::now() + START;
        while UnixStream::connect(files.socket()).is_err() {
            if !matches!(waitpid(self.pid, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive))
            {
                return Err("the manager ended at once".into());
            }
            if Instant::now() > deadline {
                return Err(format!("the manager opened no socket within {START:?}").into());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// The options of `run`, each with its value if it has one.
pub(crate) fn options(files: &PodFiles) -> Vec<(&'static str, Option<String>)> {
    let path = |path: PathBuf| path.display().to_string();
    let (mount, config) = (path(files.mount()), path(files.config()));
    vec![
        ("--socket", Some(path(files.socket()))),
        ("--state-dir", Some(path(files.state()))),
        ("--config", Some(mount.clone())),
        ("--stage", Some(format!("{mount}={config}"))),
        ("--keep-last-good", None),
        ("--ready", Some(format!("http://127.0.0.1:{}/_cluster/health", files.engine_port))),
        ("--log-format", Some("text".to_owned())),
    ]
}
