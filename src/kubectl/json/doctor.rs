//! The JSON of `doctor`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::doctor::{Examined, Finding};

/// `doctor`: what was found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DoctorOutput<'a> {
    clusters: Vec<ExaminedOutput<'a>>,
}

/// One SearchCluster.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ExaminedOutput<'a> {
    cluster: &'a str,
    namespace: &'a str,
    /// The worst first.
    findings: &'a [Finding],
}

impl<'a> DoctorOutput<'a> {
    pub(crate) fn new(all: &'a [Examined]) -> Self {
        let clusters = all.iter().map(|one| ExaminedOutput {
            cluster: &one.cluster,
            namespace: &one.namespace,
            findings: &one.findings,
        });
        Self { clusters: clusters.collect() }
    }
}
