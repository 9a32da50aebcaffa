//! How a command fails: its exit code and its message.

use std::io::{self, Write};
use std::process::ExitCode;

use stayput_net::manager_client::ClientError;
use stayput_net::terminal::plain;

/// Refused or failed.
const FAILED: u8 = 1;
/// The manager cannot be reached, or did not answer.
const NOT_REACHABLE: u8 = 2;
/// The command cannot be used as it was written (`EX_USAGE` of sysexits).
pub(super) const USAGE: u8 = 64;
/// Not done in time, as `timeout` of coreutils ends.
const TIMED_OUT: u8 = 124;

/// Why a command did not do what it was for.
#[derive(Debug)]
pub(super) enum Failure {
    /// The manager refused, or there is no answer of it.
    Client(ClientError),
    /// It is a matter of how the command was written.
    Usage(String),
    /// It failed here.
    Failed(String),
    /// It is not done yet.
    TimedOut(String),
    /// Our own output cannot be written.
    Output(io::Error),
}

impl Failure {
    /// Tells what is wrong on stderr.
    pub(super) fn report(&self) -> ExitCode {
        let (code, sentence) = match self {
            Self::Client(error @ ClientError::Refused(_)) => (FAILED, format!("refused: {error}")),
            Self::Client(error @ (ClientError::Protocol(_) | ClientError::WrongPod(_))) => {
                (FAILED, error.to_string())
            }
            Self::Client(error @ ClientError::Credentials(_)) => (USAGE, error.to_string()),
            Self::Client(
                error @ (ClientError::NotReachable(_)
                | ClientError::Untrusted(_)
                | ClientError::Unanswered(_)),
            ) => (NOT_REACHABLE, error.to_string()),
            Self::Usage(sentence) => (USAGE, sentence.clone()),
            Self::Failed(sentence) => (FAILED, sentence.clone()),
            Self::TimedOut(sentence) => (TIMED_OUT, sentence.clone()),
            // `stayput status | head` is no accident to tell about.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return ExitCode::from(FAILED);
            }
            Self::Output(error) => (FAILED, format!("cannot write the output: {error}")),
        };
        // If stderr is gone as well, the exit code has to do.
        let _ = writeln!(io::stderr(), "stayput: {}", plain(&sentence));
        ExitCode::from(code)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
