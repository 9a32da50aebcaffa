//! Why a stop is refused: what every rule answers.

use super::{Code, Unknown};

/// A rule's no.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Refusal {
    /// For programs.
    pub(super) code: Code,
    /// For people: what is in the way, and what to do.
    pub(super) sentence: String,
}

impl Refusal {
    /// No, because the engine could not be asked for what this depends on.
    pub(super) fn engine_unreachable(unknown: &Unknown) -> Self {
        Self { code: Code::EngineUnreachable, sentence: unknown.sentence.clone() }
    }
}

/// Nothing is in the way, or what is.
pub(super) type Gate = Result<(), Refusal>;

/// A no.
pub(super) fn refuse(code: Code, sentence: impl Into<String>) -> Gate {
    Err(Refusal { code, sentence: sentence.into() })
}
