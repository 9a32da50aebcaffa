//! Why a command fails: exit code and message.

use std::io::{self, Write};
use std::process::ExitCode;

use stayput_http::manager_client::ClientError;
use stayput_http::terminal::plain;

/// Refused or failed.
const FAILED: u8 = 1;
/// The manager cannot be reached, or did not answer.
const NOT_REACHABLE: u8 = 2;
/// The command line is wrong (`EX_USAGE` of sysexits).
pub(super) const USAGE: u8 = 64;
/// Not done in time; the code of coreutils' `timeout`.
const TIMED_OUT: u8 = 124;

/// Why a command failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The manager refused, or gave no good answer.
    Client(ClientError),
    /// The command line is wrong.
    Usage(String),
    /// The command itself failed.
    Failed(String),
    /// A signal ended the command.
    Signal(u8, String),
    /// The command was not done within its timeout.
    TimedOut(String),
    /// The output cannot be written.
    Output(io::Error),
}

impl Failure {
    /// Writes the message to stderr.
    pub(super) fn report(&self) -> ExitCode {
        let (code, message) = match self {
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
            Self::Usage(message) => (USAGE, message.clone()),
            Self::Failed(message) => (FAILED, message.clone()),
            Self::Signal(signal, message) => (128 + signal, message.clone()),
            Self::TimedOut(message) => (TIMED_OUT, message.clone()),
            // `stayput status | head` closes the output early; this needs no message.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return ExitCode::from(FAILED);
            }
            Self::Output(error) => (FAILED, format!("cannot write the output: {error}")),
        };
        // If stderr is closed as well, the exit code is all there is.
        let _ = writeln!(io::stderr(), "stayput: {}", plain(&message));
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
