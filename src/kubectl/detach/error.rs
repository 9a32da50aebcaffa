//! Why a cluster was not detached.

use stayput_api::Span;

use crate::actions::error::ActionError;
use crate::apiserver::ApiError;
use crate::detach::may::Refusal;
use crate::exit::Exit;
use crate::format::{duration_as_given, root_cause};
use crate::selection::SelectionError;

/// Why a cluster was not detached, or not wholly.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DetachError {
    #[error(transparent)]
    Selection(#[from] SelectionError),
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Action(#[from] ActionError),
    #[error("cannot watch the SearchCluster: {}; try again", root_cause(.0))]
    Watch(#[from] kube::runtime::wait::Error),
    #[error(
        "it is not detached after {}: `{status}` shows what is waited for; the same command goes on",
        duration_as_given(*limit)
    )]
    TimedOut { status: String, limit: Span },
}

impl DetachError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Selection(error) => error.exit(),
            Self::Api(error) => error.exit(),
            Self::Action(error) => error.exit(),
            Self::Refused(_) => Exit::Failed,
            Self::Watch(_) => Exit::NotReachable,
            Self::TimedOut { .. } => Exit::TimedOut,
        }
    }
}
