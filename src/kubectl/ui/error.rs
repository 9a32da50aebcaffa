//! Why no page is served.

use std::io;

use crate::exit::Exit;
use crate::selection::SelectionError;

/// Why no page is served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UiError {
    #[error(transparent)]
    Selection(#[from] SelectionError),
    #[error("cannot listen on 127.0.0.1:{port}: {source}; choose another --port")]
    Listen { port: u16, source: io::Error },
    #[error("the system gives no random numbers")]
    NoToken,
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl UiError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Selection(error) => error.exit(),
            Self::Listen { .. } | Self::NoToken | Self::Output(_) => Exit::Failed,
        }
    }
}
