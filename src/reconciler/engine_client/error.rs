//! What can go wrong between asking an engine and having its answer.

use thiserror::Error;

/// Why there is no good answer. Each variant tells whether the request can have had an effect, and
/// each sentence what is wrong, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EngineError {
    /// Our own side: an address, a name or a credential that cannot be used. Nothing was sent.
    #[error("{0}")]
    Unusable(String),
    /// No endpoint could be connected to. Nothing was sent.
    #[error("{0}")]
    NotReachable(String),
    /// Who answers there has a certificate that is not accepted. Nothing was sent.
    #[error("{0}")]
    Untrusted(String),
    /// The request was sent and no whole answer came: it may have had its effect.
    #[error("{0}")]
    Unanswered(String),
    /// The credentials are not accepted (401) or may not do this (403).
    #[error("{0}")]
    Unauthorized(String),
    /// The engine refused; 5xx leaves open whether it acted.
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The engine's own reason.
        reason: String,
        /// All of it, for a person.
        message: String,
    },
    /// An answer that no engine gives: something else listens there, or it is too new for us.
    #[error("{0}")]
    Protocol(String),
    /// An engine that this room cannot restart safely.
    #[error("{0}")]
    Unsupported(String),
}
