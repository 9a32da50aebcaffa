//! Runs the built `stayput` and reads its output.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use super::programs::without_settings;

/// The result of a finished run.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// `stayput` without our variables in its environment.
pub(crate) fn stayput<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stayput"));
    without_settings(&mut command);
    command.args(args).stdin(Stdio::null());
    command
}

/// `kubectl-stayput`, as `kubectl stayput` runs it, against the cluster of this kubeconfig.
pub(crate) fn kubectl_stayput<S: AsRef<OsStr>>(
    kubeconfig: &Path,
    args: impl IntoIterator<Item = S>,
) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-stayput"));
    command.args(args).env("KUBECONFIG", kubeconfig).env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn finish(command: &mut Command) -> Ended {
    let output = command.output().expect("stayput can be executed");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ended {
        code: output.status.code().expect("ended by itself"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}
