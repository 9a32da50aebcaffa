//! Snapshots, from the reconciler or from a file, and the dry runs that are computed from them.
//!
//! The reconciler serves snapshots on its loopback interface only. So its port has to be forwarded, and
//! Kubernetes decides who may do that.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{StatusCode, Uri};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::{Client, Config};
use schemars::JsonSchema;
use serde::Serialize;
use stayput_restart::{Forecast, Request, Saved, Time, forecast};
use tokio::time::timeout;

use crate::error::Exit;
use crate::port_forward::{ForwardError, PortForward};
use crate::session::Session;
use crate::view::ClusterView;
use stayput_kube_access::apiserver::root_cause;

/// Timeout of a snapshot. The reconciler finishes its current reconcile first, and then observes the
/// whole cluster.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(90);
/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotError {
    #[error(transparent)]
    Forward(#[from] ForwardError),
    #[error(
        "{address:?} is not an address of the reconciler: write for example \
         http://127.0.0.1:9198"
    )]
    InvalidAddress { address: String },
    #[error(
        "the reconciler at {address} did not answer within {} s: try again, or see its log",
        SNAPSHOT_TIMEOUT.as_secs()
    )]
    Timeout { address: String },
    #[error(
        "cannot reach the reconciler at {address}: {}; without --reconciler its port is forwarded",
        root_cause(&**source)
    )]
    Unreachable { address: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("the reconciler at {address} answered {status}: {message}")]
    Refused { address: String, status: StatusCode, message: String },
    #[error("the reconciler at {address} sent a snapshot that cannot be read: {message}")]
    InvalidAnswer { address: String, message: String },
    #[error(
        "the reconciler at {address} sees other pods in {cluster} than the apiserver has: it \
         belongs to another Kubernetes; check --context and the forwarded port"
    )]
    OtherKubernetes { address: String, cluster: String },
    #[error("{}: {source}", file.display())]
    File { file: PathBuf, source: std::io::Error },
    #[error("{}: {message}", file.display())]
    InvalidFile { file: PathBuf, message: String },
}

impl SnapshotError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Forward(error) => error.exit(),
            Self::InvalidAddress { .. } | Self::File { .. } | Self::InvalidFile { .. } => {
                Exit::Usage
            }
            Self::Timeout { .. } | Self::Unreachable { .. } => Exit::NotReachable,
            _ => Exit::Failed,
        }
    }
}

/// The way to the reconciler's snapshots.
pub(crate) enum SnapshotAccess {
    /// The address on the command line.
    Address(String),
    /// A port that is forwarded to the leader as long as this is held.
    Forward(PortForward),
}

impl SnapshotAccess {
    /// Uses the address; without one, forwards a port to the leader.
    pub(crate) async fn open(
        session: &Session,
        address: Option<&str>,
    ) -> Result<Self, ForwardError> {
        match address {
            Some(address) => Ok(Self::Address(address.to_owned())),
            None => Ok(Self::Forward(PortForward::open(session).await?)),
        }
    }

    /// A snapshot of this SearchCluster, taken now.
    pub(crate) async fn snapshot(&self, view: &ClusterView) -> Result<Saved, SnapshotError> {
        match self {
            Self::Address(address) => snapshot_from(address.clone(), view).await,
            Self::Forward(forward) => snapshot_from(forward.address(), view).await,
        }
    }
}

/// A snapshot of this SearchCluster, taken now by the reconciler at `address`; without an address, by the
/// leader, whose port is forwarded meanwhile.
pub(crate) async fn snapshot(
    session: &Session,
    address: Option<&str>,
    view: &ClusterView,
) -> Result<Saved, SnapshotError> {
    SnapshotAccess::open(session, address).await?.snapshot(view).await
}

async fn snapshot_from(address: String, view: &ClusterView) -> Result<Saved, SnapshotError> {
    let uri: Option<Uri> = address.parse().ok();
    let Some(uri) = uri.filter(|uri| uri.scheme_str() == Some("http")) else {
        return Err(SnapshotError::InvalidAddress { address });
    };
    let text = match timeout(SNAPSHOT_TIMEOUT, get(uri, &address, view)).await {
        Ok(answer) => answer?,
        Err(_) => return Err(SnapshotError::Timeout { address }),
    };
    let saved = Saved::parse(&text).map_err(|error| SnapshotError::InvalidAnswer {
        address: address.clone(),
        message: error.to_string(),
    })?;
    if is_of_other_kubernetes(&saved, view) {
        let cluster = format!("{}/{}", view.namespace, view.name);
        return Err(SnapshotError::OtherKubernetes { address, cluster });
    }
    Ok(saved)
}

async fn get(uri: Uri, address: &str, view: &ClusterView) -> Result<String, SnapshotError> {
    let unreachable = |source| SnapshotError::Unreachable { address: address.to_owned(), source };
    let path = format!("/snapshots/{}/{}", view.namespace, view.name);
    let request = http::Request::get(path).body(Body::empty());
    let request =
        request.map_err(|_| SnapshotError::InvalidAddress { address: address.to_owned() })?;
    // A refusal says why. Trying again would only delay that answer.
    let mut config = Config::new(uri);
    config.default_retry = false;
    let client = Client::try_from(config).map_err(|error| unreachable(error.into()))?;
    let response = client.send(request).await.map_err(|error| unreachable(error.into()))?;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(|error| unreachable(error.into()))?;
    let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    if status.is_success() {
        return Ok(text);
    }
    let message = text.lines().next().unwrap_or_default().to_owned();
    Err(SnapshotError::Refused { address: address.to_owned(), status, message })
}

/// True if the snapshot is of another Kubernetes cluster than the kubeconfig's: a forwarded port may
/// lead there, and then no pod is the same.
fn is_of_other_kubernetes(saved: &Saved, view: &ClusterView) -> bool {
    let seen = &saved.snapshot.pods;
    let is_ours = |uid: &String| view.pods.iter().any(|pod| pod.uid == *uid);
    !seen.is_empty() && !view.pods.is_empty() && !seen.iter().any(|pod| is_ours(&pod.uid))
}

/// Reads a snapshot from a file.
pub(crate) fn snapshot_from_file(file: &Path) -> Result<Saved, SnapshotError> {
    let text = std::fs::read_to_string(file)
        .map_err(|source| SnapshotError::File { file: file.to_owned(), source })?;
    Saved::parse(&text).map_err(|error| SnapshotError::InvalidFile {
        file: file.to_owned(),
        message: error.to_string(),
    })
}

/// The steps of a restart, assuming that every node comes back and nothing else in the cluster
/// changes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ForecastOutput")]
pub(crate) struct DatedForecast {
    /// When the cluster was observed.
    #[schemars(with = "String")]
    pub(crate) observed_at: Time,
    #[serde(flatten)]
    pub(crate) forecast: Forecast,
}

impl DatedForecast {
    /// The dry run of this request; without one, of the restart under way or to come.
    pub(crate) fn new(saved: &Saved, request: Option<&Request>) -> Self {
        let Saved { snapshot, policy, .. } = saved;
        Self { observed_at: snapshot.now, forecast: forecast(snapshot, policy, request) }
    }
}
