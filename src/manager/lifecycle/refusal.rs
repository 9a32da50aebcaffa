//! Why a request was not carried out, as plain data.

use stayput_api::Code;

/// A refused request: the stable code and a sentence for this occurrence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Refusal {
    /// For programs.
    pub code: Code,
    /// What was wrong and what to do, for people.
    pub detail: String,
}

impl Refusal {
    /// A refusal with its sentence.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}
