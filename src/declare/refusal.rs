//! Why a declaration is not carried out.

/// An error in one field. Nothing is changed while there is one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct Refusal {
    /// Path of the field, such as `spec.nodeSets[data].count`.
    pub field: String,
    /// The error, and what to write instead.
    pub problem: String,
}

impl Refusal {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }

    /// A refusal of a field of a node set, or of the node set itself.
    pub(crate) fn of_set(set: &str, field: &str, problem: impl Into<String>) -> Self {
        let dot = if field.is_empty() { "" } else { "." };
        Self::new(format!("spec.nodeSets[{set}]{dot}{field}"), problem)
    }
}
