//! The JSON of `inject --check`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::inject::Edited;
use stayput_inject::{Finding, Severity};

/// `inject --check`: what would be changed, and what was found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InjectOutput<'a> {
    /// True if manifests would be written: no finding is an error.
    possible: bool,
    /// The objects that would say something else than now; of files without an error.
    changed: Vec<ChangedOutput<'a>>,
    findings: Vec<FindingOutput<'a>>,
}

/// One object.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ChangedOutput<'a> {
    /// The file, or `stdin`.
    file: &'a str,
    /// Number of the document in the file, from 1.
    document: usize,
    /// Kind and name, as in `StatefulSet/logs`.
    object: &'a str,
    /// Fields that would be added, replaced and removed, compared with the input; for people.
    edits: &'a [String],
}

/// One thing that cannot be done, or should be known.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FindingOutput<'a> {
    severity: SeverityOutput,
    /// The file, or `stdin`.
    file: &'a str,
    /// Number of the document in the file, from 1.
    document: usize,
    /// Kind and name of the object, if it can be read.
    object: Option<&'a str>,
    /// The field, as in `spec.template.spec.containers[name=opensearch].command`.
    field: Option<&'a str>,
    /// The problem.
    message: &'a str,
    /// The remedy.
    remedy: &'a str,
}

/// How bad a finding is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum SeverityOutput {
    /// Nothing is written.
    Error,
    /// Manifests are written, and a person should know this.
    Note,
}

impl<'a> InjectOutput<'a> {
    pub(crate) fn new(edited: &'a [Edited]) -> Self {
        let done = || edited.iter().filter_map(|one| Some((&*one.file, one.result.as_ref().ok()?)));
        let changed: Vec<ChangedOutput<'_>> = done()
            .flat_map(|(file, outcome)| {
                outcome.changed.iter().map(move |one| ChangedOutput {
                    file,
                    document: one.document,
                    object: &one.object,
                    edits: &one.edits,
                })
            })
            .collect();
        let found = edited
            .iter()
            .flat_map(|one| one.findings().iter().map(move |found| (&*one.file, found)));
        let has_engine = done().any(|(_, outcome)| outcome.has_engine);
        let without = done().filter(|_| !has_engine);
        let without = without.flat_map(|(file, outcome)| {
            outcome.without_engine.iter().map(move |found| (file, found))
        });
        Self {
            possible: edited.iter().all(|one| one.result.is_ok()),
            findings: found.chain(without).map(FindingOutput::new).collect(),
            changed,
        }
    }
}

impl<'a> FindingOutput<'a> {
    fn new((file, found): (&'a str, &'a Finding)) -> Self {
        Self {
            severity: match found.severity {
                Severity::Error => SeverityOutput::Error,
                Severity::Note => SeverityOutput::Note,
            },
            file,
            document: found.document,
            object: found.object.as_deref(),
            field: found.field.as_deref(),
            message: &found.message,
            remedy: &found.remedy,
        }
    }
}
