//! Why a stop is refused: what every rule answers.

use super::{Code, Unknown};

/// A rule's no.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Blocker {
    /// For programs.
    pub(super) code: Code,
    /// For people: what is in the way, and what to do.
    pub(super) message: String,
}

impl Blocker {
    /// No, because the engine could not be asked for what this depends on.
    pub(super) fn engine_unreachable(unknown: &Unknown) -> Self {
        Self { code: Code::EngineUnreachable, message: unknown.message.clone() }
    }
}

/// Nothing is in the way, or what is.
pub(super) type Check = Result<(), Blocker>;

/// A no.
pub(super) fn refuse(code: Code, message: impl Into<String>) -> Check {
    Err(Blocker { code, message: message.into() })
}
