//! Findings about a SearchCluster.

use schemars::JsonSchema;
use serde::Serialize;

/// One thing that is wrong, or should be known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// For programs.
    pub(crate) code: &'static str,
    /// Kind and name of the object, such as `Pod/logs-0`; of several, with commas between them. Or `this machine`.
    pub(crate) object: String,
    /// The problem.
    pub(crate) message: String,
    /// The remedy: a command in each line, or a sentence that says what to do.
    pub(crate) remedy: String,
}

/// How bad a finding is; the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Severity {
    /// A restart is blocked by it, or would do harm.
    Error,
    /// A fact could not be read: nobody knows whether it is good.
    Unknown,
    /// The object works, and is not safe or will not work for long.
    Warning,
    /// A fact that a person should know.
    Note,
}

/// The verdict of all findings together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    /// At least one finding is an error.
    Bad,
    /// No finding is an error, but not everything could be read.
    Unknown,
}

impl Severity {
    /// The name that is shown.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

impl Verdict {
    pub(crate) fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        match findings.into_iter().map(|finding| finding.severity).min() {
            Some(Severity::Error) => Self::Bad,
            Some(Severity::Unknown) => Self::Unknown,
            Some(Severity::Warning | Severity::Note) | None => Self::Good,
        }
    }
}

impl Finding {
    pub(crate) fn error(
        code: &'static str,
        object: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (object, message, remedy) = (object.into(), message.into(), remedy.into());
        Self { severity: Severity::Error, code, object, message, remedy }
    }

    pub(crate) fn into_warning(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }

    pub(crate) fn into_note(self) -> Self {
        Self { severity: Severity::Note, ..self }
    }

    pub(crate) fn into_unknown(self) -> Self {
        Self { severity: Severity::Unknown, ..self }
    }
}
