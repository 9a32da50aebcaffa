//! Errors of requests to an engine.

use std::error::Error as StdError;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use thiserror::Error;

/// Reason why there is no usable answer. The variant tells if the request can have had an effect; the message
/// says what is wrong, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EngineError {
    /// Our own side: an address, a name or a credential that cannot be used. Nothing was sent.
    #[error(transparent)]
    Unusable(Cause),
    /// No endpoint could be connected to. Nothing was sent.
    #[error(transparent)]
    NotReachable(Cause),
    /// The certificate of the other side is not accepted. Nothing was sent.
    #[error(transparent)]
    Untrusted(Cause),
    /// The request was sent and no whole answer came: it may have had its effect.
    #[error(transparent)]
    Unanswered(Cause),
    /// The credentials are not accepted (401) or may not do this (403).
    #[error(transparent)]
    Unauthorized(Cause),
    /// The engine refused; 5xx leaves open whether it acted.
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The engine's own reason.
        reason: String,
        /// The whole message, for people.
        message: String,
    },
    /// An answer that no known engine gives: another program listens there, or the engine is too
    /// new.
    #[error(transparent)]
    Protocol(Cause),
    /// An engine that cannot be restarted safely.
    #[error(transparent)]
    Unsupported(Cause),
}

impl EngineError {
    /// True if an engine has answered that it has no elected master. With 200 only its outdated state is
    /// refused.
    pub const fn is_without_master(&self) -> bool {
        matches!(self, Self::Refused { status: 200 | 503, .. })
    }
}

/// A message for people, and the error that it is about, if there is one.
#[derive(Debug, Clone)]
pub struct Cause {
    message: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Cause {
    /// A message about an error. It should contain the error's own message.
    pub(super) fn new(
        message: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self { message: message.into(), source: Some(Arc::from(source.into())) }
    }

    /// An error whose own message says enough.
    pub(super) fn of(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let source: Arc<dyn StdError + Send + Sync> = Arc::from(source.into());
        Self { message: source.to_string(), source: Some(source) }
    }
}

/// Causes with the same message are equal.
impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        self.message == other.message
    }
}

impl Eq for Cause {}

impl From<String> for Cause {
    fn from(message: String) -> Self {
        Self { message, source: None }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl StdError for Cause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|source| -> &(dyn StdError + 'static) { source.as_ref() })
    }
}

/// Dereferences to the message.
impl Deref for Cause {
    type Target = str;

    fn deref(&self) -> &str {
        &self.message
    }
}
