//! What there is to say about a manifest.

use std::fmt;

/// Where something was found, what, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Number of the document in the input, from 1.
    pub document: usize,
    /// Kind and name of the object, as in `StatefulSet/logs`; nothing if it cannot be read.
    pub object: Option<String>,
    /// The field, as in `spec.template.spec.containers[name=opensearch].command`.
    pub field: Option<String>,
    /// Whether it can be done in spite of it.
    pub severity: Severity,
    /// What was found.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

/// Whether there is output in spite of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Nothing is written.
    Error,
    /// It is done, and this should be known.
    Note,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Note => "note",
        };
        write!(formatter, "{severity}: document {}", self.document)?;
        if let Some(object) = &self.object {
            write!(formatter, ", {object}")?;
        }
        if let Some(field) = &self.field {
            write!(formatter, ", {field}")?;
        }
        write!(formatter, ": {}. {}", self.message, self.remedy)
    }
}

/// A finding in an object, before it is known where the object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) field: Option<String>,
    pub(crate) severity: Severity,
    pub(crate) message: String,
    pub(crate) remedy: String,
}

impl Found {
    pub(crate) fn error(
        field: impl fmt::Display,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let field = Some(field.to_string());
        Self { field, severity: Severity::Error, message: message.into(), remedy: remedy.into() }
    }

    pub(crate) fn note(
        field: impl fmt::Display,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Note, ..Self::error(field, message, remedy) }
    }
}
