//! `doctor`: finds problems of a SearchCluster and everything around it, and the commands that fix them.
//!
//! * [`facts`]: facts, or why they could not be read.
//! * [`read`]: reads them; the only module here that sends requests.
//! * [`checks`]: from facts to [`finding`]s, one file for each group; pure.
//!
//! The reconciler asks managers and engine, over the same network path as its requests: its snapshot
//! shows who answers.

mod checks;
mod facts;
pub(crate) mod finding;
pub(crate) mod network;
mod read;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

use crate::args::DoctorArgs;
use crate::doctor::finding::Finding;
use crate::error::Error;
use crate::options::{into_commands, into_quoted_commands};
use crate::selection;
use crate::session::Session;

/// The findings of `doctor`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DoctorOutput {
    pub(crate) clusters: Vec<Examined>,
}

/// One SearchCluster, examined.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ExaminedOutput")]
pub(crate) struct Examined {
    pub(crate) cluster: String,
    pub(crate) namespace: String,
    /// The worst first.
    pub(crate) findings: Vec<Finding>,
}

/// Examines one SearchCluster, or all.
pub(crate) async fn examine(session: &Session, args: &DoctorArgs) -> Result<DoctorOutput, Error> {
    let name = args.clusters.cluster.name.as_deref();
    let clusters = if args.clusters.all_namespaces {
        selection::everywhere(session).await?
    } else {
        vec![selection::cluster(session, name).await?]
    };
    let options = session.options_in_shell();
    let mut examined = Vec::new();
    for cluster in clusters {
        let reconciler = args.reconciler.address.as_deref();
        let facts = Box::pin(read::read(session, cluster, reconciler)).await;
        let findings = checks::findings(&facts).into_iter().map(|finding| Finding {
            message: into_quoted_commands(&finding.message, &options),
            remedy: into_commands(&finding.remedy, &options),
            ..finding
        });
        examined.push(Examined {
            namespace: facts.namespace().to_owned(),
            cluster: facts.name().to_owned(),
            findings: findings.collect(),
        });
    }
    Ok(DoctorOutput { clusters: examined })
}
