//! How a command fails: its exit code and its sentence.

use std::io::{self, Write};
use std::process::ExitCode;

use stayput_net::terminal::plain;

/// Refused, failed, or a restart that did not end as done.
const FAILED: u8 = 1;
/// The apiserver, or the reconciler, cannot be reached.
const NOT_REACHABLE: u8 = 2;
/// The command cannot be used as it was written (`EX_USAGE` of sysexits).
pub(super) const USAGE: u8 = 64;
/// Not done in time, as `timeout` of coreutils ends.
const TIMED_OUT: u8 = 124;

/// Why a command did not do what it was for; each sentence says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It is a matter of how the command was written.
    #[error("{0}")]
    Usage(String),
    /// Refused, or failed.
    #[error("{0}")]
    Failed(String),
    /// A restart ended, and not as done; it was told already.
    #[error("{0}")]
    NotDone(String),
    /// The apiserver, or the reconciler, cannot be reached.
    #[error("{0}")]
    NotReachable(String),
    /// What was asked for is not done yet, and stands.
    #[error("{0}")]
    TimedOut(String),
    /// Our own output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl Failure {
    /// Tells what is wrong on stderr.
    pub(super) fn report(&self) -> ExitCode {
        let code = match self {
            Self::Usage(_) => USAGE,
            Self::Failed(_) | Self::NotDone(_) => FAILED,
            Self::NotReachable(_) => NOT_REACHABLE,
            Self::TimedOut(_) => TIMED_OUT,
            // `kubectl stayput status | head` is no accident to tell about.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return ExitCode::from(FAILED);
            }
            Self::Output(_) => FAILED,
        };
        // If stderr is gone as well, the exit code has to do.
        let _ = writeln!(io::stderr(), "kubectl-stayput: {}", plain(&self.to_string()));
        ExitCode::from(code)
    }
}
