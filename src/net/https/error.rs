//! Why there is no answer.

use std::io;

use thiserror::Error;

/// Why there is no answer; each variant tells whether the request can have had an effect.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// The certificate of the other side is not accepted: what is wrong with it, and what to do.
    /// Nothing was sent.
    #[error("{0}")]
    Untrusted(String),
    /// No connection, no TLS session, or not in time. Nothing was sent.
    #[error("{0}")]
    NotConnected(io::Error),
    /// The request was sent, at least in part, and no whole answer came: it may have had its effect.
    #[error("{0}")]
    Unanswered(String),
}
