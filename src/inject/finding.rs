//! Findings about a manifest.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// One thing that cannot be done, or should be known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// Number of the document in the file, from 1.
    pub document: usize,
    /// Kind and name of the object, if it can be read.
    pub object: Option<String>,
    /// The field, as in `spec.template.spec.containers[name=opensearch].command`.
    pub field: Option<String>,
    /// How bad it is.
    pub severity: Severity,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub remedy: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SeverityOutput")]
pub enum Severity {
    /// Nothing is written.
    Error,
    /// Manifests are written, and a person should know this.
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

/// A finding in an object, before the place of the object is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectIssue {
    pub(crate) field: Option<String>,
    pub(crate) severity: Severity,
    pub(crate) message: String,
    pub(crate) remedy: String,
}

impl ObjectIssue {
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
