//! `init`: creates the objects that a cluster needs beside its pods. Objects that others made stay as
//! they are; a second run changes nothing.

mod certificates;
mod cluster;
mod made;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use stayput_certificates::issue::IssueError;
use stayput_certificates::names::SecretNames;
use stayput_kube_access::cluster::{Auth, SearchCluster};
use tokio::time::{Instant, sleep};

use crate::apiserver::{ApiError, clusters, definition};
use crate::args::InitArgs;
use crate::error::Exit;
use crate::format::now;
use crate::init::made::{Kind, Made};
use crate::session::Session;

/// Why `init` ended early. Objects that were created before stay.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InitError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("a certificate cannot be made: {0}")]
    Issue(#[from] IssueError),
    #[error("--selector {0} is not understood: write labels as in app=logs,role=data")]
    Selector(String),
    #[error(
        "SearchCluster {cluster} checks the managers with the CA in Secret {trusted}, and cert-manager's \
         certificate is of another CA: the reconciler would reach no manager. Nothing was changed. While no \
         restart is under way: `{patch}`, then run `init` again"
    )]
    OtherAuthority { cluster: String, trusted: String, patch: String },
    #[error("cannot read the answer of the apiserver: {0}")]
    Answer(#[source] kube::core::dynamic::ParseDynamicObjectError),
}

impl InitError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Api(error) => error.into(),
            Self::Selector(_) => Exit::Usage,
            _ => Exit::Failed,
        }
    }
}

/// Creates the missing objects.
pub(crate) async fn init(session: &Session, args: &InitArgs) -> Result<InitOutput, InitError> {
    until_served(session).await;
    let names = SecretNames::of(&session.namespace, &args.cluster);
    let mut made = Made::new(session, args.dry_run);
    let there: Option<SearchCluster> = made.find_as(Kind::SearchCluster, &args.cluster).await?;
    let spec = there.as_ref().map(|there| there.completed_spec().into_owned());

    let manager = spec.map(|spec| spec.manager).unwrap_or_default();
    if args.cert_manager.is_some() && there.is_some() && manager.ca_secret != names.serving {
        return Err(other_authority(&names, &manager.ca_secret));
    }
    let is_made_here = [names.trusted.as_str(), ""].contains(&manager.ca_secret.as_str());
    let now = now().0 / 1000;
    match &args.cert_manager {
        Some(issuer) => {
            certificates::order(&mut made, &names, issuer, &manager.server_name).await?
        }
        None if is_made_here => {
            certificates::make(&mut made, &names, &manager.server_name, now).await?;
        }
        None => made.note(
            Kind::Secret,
            &manager.ca_secret,
            InitResult::Left,
            "the SearchCluster names it as the CA of the managers; no certificate is made",
        ),
    }

    // Without a SearchCluster the one that is made below counts.
    let needs_keys = there.as_ref().is_none_or(|there| {
        there.check().is_ok_and(|checked| matches!(checked.auth, Auth::ServiceAccountToken))
    });
    if needs_keys {
        certificates::make_keys(&mut made, &names, now).await?;
    }
    let renews_certificates = args.cert_manager.is_none() && is_made_here;
    let is_declared = there.as_ref().is_some_and(SearchCluster::is_declared);
    certificates::make_rights(&mut made, &names, renews_certificates, is_declared).await?;

    let next = cluster::make_cluster(&mut made, &names, args, there.as_ref()).await?;
    Ok(InitOutput {
        cluster: args.cluster.clone(),
        namespace: session.namespace.clone(),
        dry_run: args.dry_run,
        objects: made.objects,
        notes: next.notes,
        next: next.commands,
    })
}

/// The error for another CA: cert-manager writes its CA beside the certificate.
fn other_authority(names: &SecretNames, trusted: &str) -> InitError {
    let SecretNames { namespace, cluster, serving, .. } = names;
    InitError::OtherAuthority {
        cluster: cluster.clone(),
        trusted: trusted.to_owned(),
        patch: format!(
            "kubectl -n {namespace} patch searchcluster {cluster} --type merge -p \
             '{{\"spec\":{{\"manager\":{{\"caSecret\":\"{serving}\"}}}}}}'"
        ),
    }
}

/// `init`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitOutput {
    pub(crate) cluster: String,
    pub(crate) namespace: String,
    /// True for a dry run: nothing was changed.
    pub(crate) dry_run: bool,
    /// The objects, in the order in which they were made.
    pub(crate) objects: Vec<InitObject>,
    /// For people: what the next command brings with it, and what is possible after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    /// Commands to type next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) next: Vec<String>,
}

/// One object.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitObject {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) result: InitResult,
    /// For people: what it is for, why it was left, or why it is missing and what to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
}

/// Result for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum InitResult {
    /// The object was created.
    Made,
    /// The object was brought up to date.
    Changed,
    /// The object is as it should be.
    Unchanged,
    /// Somebody else made it, and it was not changed.
    Left,
    /// The object is missing, or cannot be used.
    Missing,
}

impl InitOutput {
    /// Why some of the objects are missing.
    pub(crate) fn problem(&self) -> Option<String> {
        let missing = self.objects.iter().filter(|one| one.result == InitResult::Missing);
        let all: Vec<String> =
            missing.map(|one| format!("{} {}: {}", one.kind, one.name, one.message)).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// Maximum wait. Several apiservers serve a new definition after five seconds, so that each of them
/// knows it.
const SERVED_WITHIN: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(500);

/// Waits until SearchClusters are served, if their definition exists. The calls that follow report any
/// other problem.
async fn until_served(session: &Session) {
    let deadline = Instant::now() + SERVED_WITHIN;
    while clusters(session).await.is_err_and(|error| error.is_not_found())
        && definition(&session.client).await.is_ok_and(|there| there.is_some())
        && Instant::now() < deadline
    {
        sleep(PAUSE).await;
    }
}
