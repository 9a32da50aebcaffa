//! `doctor`: finds problems of a SearchCluster and everything around it, and the commands that fix them.
//!
//! * [`read`]: reads the facts; the only module here that sends requests.
//! * [`checks`]: from facts to findings; pure.
//!
//! The reconciler asks managers and engine, over the same network path as its requests: its snapshot
//! shows who answers.

mod checks;
mod network;
mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::DynamicObject;
use schemars::JsonSchema;
use serde::Serialize;
use stayput_kube_access::cluster::SearchCluster;
use stayput_pod_update::{Ignore, Source};
use stayput_restart::{Known, Saved, Time};

use crate::args::DoctorArgs;
use crate::error::Error;
use crate::leader::why_none;
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
    let access = read::access(session, args.reconciler.address.as_deref()).await;
    let installation = read::installation(&session.client).await;
    let mut examined = Vec::new();
    for cluster in clusters {
        let facts = Box::pin(read::read(&session.client, cluster, &access, &installation)).await;
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

    pub(crate) fn warning(
        code: &'static str,
        object: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, object, message, remedy) }
    }

    pub(crate) fn note(
        code: &'static str,
        object: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Note, ..Self::error(code, object, message, remedy) }
    }

    pub(crate) fn unknown(
        code: &'static str,
        object: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Unknown, ..Self::error(code, object, message, remedy) }
    }
}

/// All facts for the checks.
#[derive(Debug)]
pub(crate) struct Facts {
    /// Time of this machine's clock.
    pub(crate) now: Time,
    pub(crate) cluster: SearchCluster,
    pub(crate) pods: Known<Vec<Pod>>,
    /// The StatefulSets of the pods, by name; `None` for one that does not exist.
    pub(crate) sets: BTreeMap<String, Known<Option<StatefulSet>>>,
    /// The operators' objects that the StatefulSets belong to, by kind and name.
    pub(crate) operated: BTreeMap<(String, String), Known<Option<DynamicObject>>>,
    /// The Secrets that the spec names, and those with the certificates that managers serve.
    pub(crate) secrets: BTreeMap<String, Known<Option<Secret>>>,
    /// Ignored parts of the objects that pods mount where nobody watches them, as far as these could
    /// be read.
    pub(crate) ignored: BTreeMap<Source, Ignore>,
    /// The reconciler's snapshot, with the managers and the engine.
    pub(crate) snapshot: Known<Taken>,
    /// NetworkPolicies in the namespace of the SearchCluster.
    pub(crate) policies: Known<Vec<NetworkPolicy>>,
    pub(crate) budgets: Known<Vec<PodDisruptionBudget>>,
    /// Rights that the reconciler needs, each with the answer if it has it.
    pub(crate) rights: Vec<(Right, Known<bool>)>,
    pub(crate) installation: Installation,
}

/// Facts that are the same for all SearchClusters: the apiserver, and what is installed for the reconciler.
#[derive(Debug, Clone)]
pub(crate) struct Installation {
    pub(crate) apiserver_time: Known<ApiserverTime>,
    pub(crate) definition: Known<Option<CustomResourceDefinition>>,
    pub(crate) lease: Known<Option<Lease>>,
    /// The reconciler's pods.
    pub(crate) pods: Known<Vec<Pod>>,
    /// The reconciler's namespace.
    pub(crate) namespace: Known<Option<Namespace>>,
    /// True if `deploy/keep-pods` is installed.
    pub(crate) keeps_pods: Known<bool>,
    /// NetworkPolicies in the reconciler's namespace.
    pub(crate) policies: Known<Vec<NetworkPolicy>>,
}

/// Time of the apiserver's clock, and this machine's before and after the call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApiserverTime {
    pub(crate) asked: Time,
    pub(crate) server: Time,
    pub(crate) answered: Time,
}

/// A snapshot, and this machine's clock before and after the call.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) asked: Time,
    pub(crate) saved: Saved,
    pub(crate) answered: Time,
}

/// A right of the reconciler in the namespace of the SearchCluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Right {
    pub(crate) verb: &'static str,
    pub(crate) group: &'static str,
    pub(crate) resource: &'static str,
    pub(crate) subresource: &'static str,
}

impl Facts {
    pub(crate) fn namespace(&self) -> &str {
        self.cluster.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.cluster.metadata.name.as_deref().unwrap_or_default()
    }

    /// Name of the right in findings.
    pub(crate) fn object(&self) -> String {
        format!("SearchCluster/{}", self.name())
    }

    /// Why no reconciler works, if that is known. The Lease is compared with the apiserver's clock: this
    /// machine's may be wrong.
    pub(crate) fn why_no_reconciler(&self) -> Option<String> {
        let Installation { apiserver_time, lease, .. } = &self.installation;
        let now = apiserver_time.as_ref().map_or(self.now, |time| time.server);
        why_none(lease.as_ref().ok()?.as_ref(), now)
    }

    /// The pods; empty while they are not known.
    pub(crate) fn known_pods(&self) -> &[Pod] {
        self.pods.as_ref().map(Vec::as_slice).unwrap_or_default()
    }
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if self.subresource.is_empty() { Ok(()) } else { write!(f, "/{}", self.subresource) }
    }
}
