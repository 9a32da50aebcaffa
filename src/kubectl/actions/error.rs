//! Why a command changed nothing.

use std::io;

use crate::actions::attempts::MAX_ATTEMPTS;
use crate::apiserver::ApiError;
use crate::exit::Exit;
use crate::format::NOT_PROCESSED;
use crate::selection::SelectionError;

/// Why a command changed nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActionError {
    #[error(transparent)]
    Selection(#[from] SelectionError),
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    #[error("{object} was changed by others {MAX_ATTEMPTS} times meanwhile: try again")]
    Conflict { object: String },

    #[error("{message}")]
    InvalidRequest { message: String },
    #[error("the request cannot be encoded: {0}")]
    Encoding(#[source] serde_json::Error),
    #[error("the system gives no random numbers: choose an id with --id")]
    NoRandomId,
    #[error("{question} To confirm, add --yes")]
    NotInteractive { question: String },
    #[error("not confirmed; nothing was changed")]
    NotConfirmed,

    #[error("SearchCluster {0} is being deleted: no further restart begins")]
    Deleting(String),
    #[error("{NOT_PROCESSED}")]
    NotProcessed,
    #[error(
        "restart {id} was requested and is not accepted yet: wait, or withdraw it with `{cancel}`"
    )]
    OtherRequested { id: String, cancel: String },
    #[error(
        "{cluster} has no node {node}; there are: {}",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    )]
    UnknownNode { cluster: String, node: String, known: Vec<String> },
    #[error("{node} is kept stopped and is not restarted: start it with `{start}`")]
    NodeKeptStopped { node: String, start: String },
    #[error("{cluster} has no node that may be restarted: see `{status}`")]
    NoNodes { cluster: String, status: String },

    #[error(
        "restart {id} already stops no further node; it will end as {outcome}{}",
        next.as_ref().map(|next| format!("; {next}")).unwrap_or_default()
    )]
    AlreadyEnding { id: String, outcome: &'static str, next: Option<String> },
    #[error("cancellation of restart {id} is not accepted yet: wait")]
    OtherCancelled { id: String },
    #[error("restart {id} cannot be cancelled any more: {reason}")]
    NotCancellable { id: String, reason: String },
    #[error("restart {id} has ended: {outcome}")]
    AlreadyEnded { id: String, outcome: &'static str },
    #[error("{cluster} has no restart {id}: see `{status}`")]
    UnknownRestart { cluster: String, id: String, status: String },
    #[error("{0} has no restart under way and no request for one")]
    NoRestart(String),

    #[error("{} already asked for; {node}: {error}; to take that back: `{back}`", are(done))]
    Partly { done: Vec<String>, node: String, error: Box<Self>, back: String },
    #[error("the pod of {0} no longer exists")]
    PodGone(String),
    #[error(
        "spec.stopped of SearchCluster {cluster} names {node}: remove it there, `{edit}`; nothing was \
         changed"
    )]
    KeptStoppedBySpec { cluster: String, node: String, edit: String },
}

fn are(nodes: &[String]) -> String {
    format!("{} {}", nodes.join(", "), if nodes.len() == 1 { "is" } else { "are" })
}

impl ActionError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Selection(error) => error.exit(),
            Self::Api(error) => error.exit(),
            Self::Partly { error, .. } => error.exit(),
            Self::InvalidRequest { .. } | Self::NotInteractive { .. } => Exit::Usage,
            _ => Exit::Failed,
        }
    }
}
