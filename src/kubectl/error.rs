//! Why a command failed: every error of the modules below, and its exit code.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use stayput_api::Span;
use stayput_http::terminal::plain;
use stayput_kube_access::cluster::CrdError;
use stayput_restart::HistoryEntry;

use crate::actions::ActionError;
use crate::detach::DetachError;
use crate::format::{duration_as_given, or_dash};
use crate::init::InitError;
use crate::inject::InjectError;
use crate::options::into_quoted_commands;
use crate::selection::SelectionError;
use crate::session::SessionError;
use crate::snapshot::SnapshotError;
use crate::ui::UiError;
use crate::watch::WatchError;

/// Why a command failed. Each message says what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot start: {0}")]
    Runtime(#[source] io::Error),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Selection(#[from] SelectionError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Action(#[from] ActionError),
    #[error(transparent)]
    Detach(#[from] DetachError),
    #[error(transparent)]
    Watch(#[from] WatchError),
    #[error(transparent)]
    Inject(#[from] InjectError),
    #[error(transparent)]
    Init(#[from] InitError),
    #[error(transparent)]
    Ui(#[from] UiError),
    #[error("{0}")]
    Incomplete(String),
    #[error(transparent)]
    Crd(#[from] CrdError),
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    #[error("cannot write the snapshot to {}: {source}", file.display())]
    SnapshotFile { file: PathBuf, source: io::Error },
    #[error("the snapshot has no node {node}; it has: {}", known.join(", "))]
    NodeNotInSnapshot { node: String, known: Vec<String> },
    #[error("the reconciler would refuse this request: see above")]
    WouldBeRefused,
    #[error("this command has no --output: it always prints the same text")]
    NoJson,
    #[error("there are errors: the remedies are shown above")]
    Unfit,
    #[error("some checks could not be made: see above")]
    NotExamined,
    #[error("restart {} ended as {}: {}", .0.id, .0.outcome.as_str(), or_dash(&.0.reason))]
    RestartNotDone(Box<HistoryEntry>),
    #[error(
        "the restart is not over after {}; the request stays in force",
        duration_as_given(*.0)
    )]
    TimedOut(Span),
    #[error("nobody has requested this restart within {}: there is nothing to wait for", duration_as_given(*.0))]
    NotRequested(Span),
}

impl Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Selection(error) => error.exit(),
            Self::Snapshot(error) => error.exit(),
            Self::Action(error) => error.exit(),
            Self::Detach(error) => error.exit(),
            Self::Watch(error) => error.exit(),
            Self::Init(error) => error.exit(),
            Self::Ui(error) => error.exit(),
            Self::Inject(error) => error.exit(),
            Self::TimedOut(_) | Self::NotRequested(_) => Exit::TimedOut,
            Self::NotExamined => Exit::NotReachable,
            Self::Session(_) | Self::NoJson => Exit::Usage,
            _ => Exit::Failed,
        }
    }

    /// The error of our own output, if this is one.
    const fn output(&self) -> Option<&io::Error> {
        match self {
            Self::Output(error)
            | Self::Inject(InjectError::Output(error))
            | Self::Action(ActionError::Output(error))
            | Self::Ui(UiError::Output(error))
            | Self::Watch(WatchError::Output(error)) => Some(error),
            _ => None,
        }
    }

    /// Writes the message to stderr, with these options in its commands, and returns the exit code.
    pub(crate) fn report(&self, options: &str) -> ExitCode {
        // The reader of `kubectl stayput status | head` has closed the pipe on purpose.
        let is_broken_pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        if !self.output().is_some_and(is_broken_pipe) {
            // Where stderr cannot be written, the exit code is all that is left.
            let message = into_quoted_commands(&self.to_string(), options);
            let _ = writeln!(io::stderr(), "kubectl-stayput: {}", lines(&message));
        }
        self.exit().into()
    }
}

/// The message, safe for a terminal. The question before an action has several lines.
fn lines(message: &str) -> String {
    message.lines().map(plain).collect::<Vec<_>>().join("\n")
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_of_several_lines_is_shown_in_them() {
        let shown = lines("first:\n  \u{1b}[2Jsecond\tone\n");
        assert_eq!(shown, "first:\n  \\u{1b}[2Jsecond\\tone");
    }
}
