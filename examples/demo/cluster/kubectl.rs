//! `kubectl stayput`, as a user would run it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::unistd::Pid;

use crate::error::{Context, Result};
use crate::interruption::Interruption;
use crate::narrator::Narrator;

/// Runs the command.
pub(super) struct Kubectl<'a> {
    kubeconfig: PathBuf,
    timeout: Duration,
    interruption: &'a Interruption,
}

impl<'a> Kubectl<'a> {
    pub(super) fn new(
        kubeconfig: PathBuf,
        timeout: Duration,
        interruption: &'a Interruption,
    ) -> Self {
        Self { kubeconfig, timeout, interruption }
    }

    /// Runs it, and quotes each line as it is printed; the exit code must be 0.
    pub(super) fn quoted(&self, narrator: &Narrator, args: &[&str]) -> Result<()> {
        let line = args.join(" ");
        narrator.note(&format!("$ kubectl stayput {line}"));
        let spawn = || {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg(crate::KUBECTL).args(args).env("KUBECONFIG", &self.kubeconfig);
            if args.contains(&"--watch") {
                command.arg("--timeout").arg(format!("{}s", self.timeout.as_secs()));
            }
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
        };
        let failed = |error| format!("kubectl stayput {line}: {error}");
        let mut child = spawn().map_err(failed)?;
        let pid = Pid::from_raw(i32::try_from(child.id()).context("the pid")?);
        self.interruption.register(pid);
        if let Some(stdout) = child.stdout.take() {
            for said in BufReader::new(stdout).lines() {
                narrator.quote(&said.map_err(failed)?);
            }
        }
        self.interruption.unregister(pid);
        let status = child.wait().map_err(failed)?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("kubectl stayput {line} ended with {status}").into())
        }
    }
}
