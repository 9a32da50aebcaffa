//! The manager's answer to a stop or start request: accepted, or refused and why.

use super::Code;

/// A request that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Accepted {
    /// The sequence it was accepted under.
    pub sequence: u64,
    /// True if the requested state already holds; otherwise the request is in progress.
    pub done: bool,
}

/// The manager refuses a request. Over HTTP it becomes a [`Problem`](super::Problem).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Refusal {
    /// Reason for programs.
    pub code: Code,
    /// Reason for people: the fault and what to do.
    pub message: String,
}

impl Refusal {
    /// A refusal for this reason.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}
