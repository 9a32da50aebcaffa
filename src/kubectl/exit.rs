//! The exit codes of commands that failed.

use std::process::ExitCode;

/// How a command failed, for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Refused, failed, or a restart that did not end as done.
    Failed = 1,
    /// The apiserver, or the reconciler, cannot be reached.
    NotReachable = 2,
    /// The command line is wrong (`EX_USAGE` of sysexits).
    Usage = 64,
    /// Not done in time, as `timeout` of coreutils ends.
    TimedOut = 124,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
