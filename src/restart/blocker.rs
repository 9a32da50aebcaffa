//! Why a node may not be stopped now: the result of a rule.

use super::{Code, Unknown};

/// Why a rule does not allow a stop.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Blocker {
    pub(super) code: Code,
    /// The obstacle and the remedy, for people.
    pub(super) message: String,
}

impl Blocker {
    /// The blocker of a rule that depends on an engine that does not answer.
    pub(super) fn engine_unreachable(unknown: &Unknown) -> Self {
        Self { code: Code::EngineUnreachable, message: unknown.message.clone() }
    }
}

/// The result of a rule: passed, or why not.
pub(super) type Check = Result<(), Blocker>;

/// A rule that does not pass.
pub(super) fn refuse(code: Code, message: impl Into<String>) -> Check {
    Err(Blocker { code, message: message.into() })
}
