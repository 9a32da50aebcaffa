//! Why a restart is not watched to its end.

use std::io;

use crate::apiserver::ApiError;
use crate::exit::Exit;

/// Why a restart is not watched to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WatchError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("the watch has ended: try again")]
    StreamEnded,
    #[error("SearchCluster {0} was deleted")]
    ClusterDeleted(String),
    #[error(
        "restart {id} is neither under way nor in the history, and will not begin: it was requested \
         before the reconciler first processed this SearchCluster, or the history no longer \
         contains it; see `{history}`"
    )]
    RestartLost { id: String, history: String },
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl WatchError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Api(error) => error.exit(),
            Self::StreamEnded => Exit::NotReachable,
            Self::ClusterDeleted(_) | Self::RestartLost { .. } | Self::Output(_) => Exit::Failed,
        }
    }
}
