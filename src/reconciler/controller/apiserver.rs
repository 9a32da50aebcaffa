//! Every call to the apiserver: bounded in time, counted, and with errors that say what to do.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use serde_json::Value;
use tokio::time::timeout;

use super::Account;
use super::metrics::{Metrics, Side};
use crate::cluster::SearchCluster;

/// How long one call may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// What we call ourselves in managed fields.
pub(super) const MANAGER: &str = "stayput-reconciler";

/// How long tokens are asked to live, in seconds: the least that may be asked.
pub(super) const TOKEN_SECONDS: u32 = 600;

/// Why a call came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    /// Somebody else was there first: look again.
    #[error("{0}")]
    Conflict(String),
    /// There is no such object.
    #[error("{0}")]
    NotFound(String),
    /// Anything else; the call may have had its effect.
    #[error("{0}")]
    Failed(String),
}

/// The apiserver, as the controller uses it.
#[derive(Clone)]
pub(super) struct Apiserver {
    client: kube::Client,
    metrics: Arc<Metrics>,
}

impl Apiserver {
    pub(super) fn new(client: kube::Client, metrics: Arc<Metrics>) -> Self {
        Self { client, metrics }
    }

    /// For watches and events, which are not single calls.
    pub(super) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    async fn call<T>(
        &self,
        kind: &'static str,
        what: &str,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Failure> {
        let result = match timeout(PATIENCE, call).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(failure(kind, what, &error)),
            Err(_) => Err(Failure::Failed(format!(
                "no answer of the apiserver to {kind} of {what} within {} s",
                PATIENCE.as_secs()
            ))),
        };
        self.metrics.count_request(Side::Apiserver, kind, result.is_ok());
        if matches!(result, Err(Failure::Conflict(_))) {
            self.metrics.count_conflict();
        }
        result
    }

    pub(super) async fn cluster(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<SearchCluster, Failure> {
        let api: Api<SearchCluster> = Api::namespaced(self.client(), namespace);
        let what = format!("SearchCluster {namespace}/{name}");
        self.call("get_cluster", &what, api.get(name)).await
    }

    /// Replaces the status, on the version that `cluster` has.
    pub(super) async fn write_status(
        &self,
        cluster: &SearchCluster,
    ) -> Result<SearchCluster, Failure> {
        let (namespace, name) = of(&cluster.metadata);
        let api: Api<SearchCluster> = Api::namespaced(self.client(), namespace);
        let what = format!("the status of SearchCluster {namespace}/{name}");
        let post = PostParams { field_manager: Some(MANAGER.into()), ..PostParams::default() };
        self.call("write_status", &what, api.replace_status(name, &post, cluster)).await
    }

    /// Patches metadata, by a JSON patch.
    pub(super) async fn patch_cluster(
        &self,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<SearchCluster, Failure> {
        let api: Api<SearchCluster> = Api::namespaced(self.client(), namespace);
        let what = format!("SearchCluster {namespace}/{name}");
        let patch = json_patch(patch)?;
        self.call("patch_cluster", &what, api.patch(name, &params(), &patch)).await
    }

    pub(super) async fn pod(&self, namespace: &str, name: &str) -> Result<Pod, Failure> {
        let api: Api<Pod> = Api::namespaced(self.client(), namespace);
        self.call("get_pod", &format!("Pod {namespace}/{name}"), api.get(name)).await
    }

    /// Patches metadata, by a JSON patch.
    pub(super) async fn patch_pod(
        &self,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<Pod, Failure> {
        let api: Api<Pod> = Api::namespaced(self.client(), namespace);
        let what = format!("Pod {namespace}/{name}");
        let patch = json_patch(patch)?;
        self.call("patch_pod", &what, api.patch(name, &params(), &patch)).await
    }

    pub(super) async fn secret(&self, namespace: &str, name: &str) -> Result<Secret, Failure> {
        let api: Api<Secret> = Api::namespaced(self.client(), namespace);
        self.call("get_secret", &format!("Secret {namespace}/{name}"), api.get(name)).await
    }

    pub(super) async fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<ConfigMap, Failure> {
        let api: Api<ConfigMap> = Api::namespaced(self.client(), namespace);
        self.call("get_config_map", &format!("ConfigMap {namespace}/{name}"), api.get(name)).await
    }

    pub(super) async fn stateful_set(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<StatefulSet, Failure> {
        let api: Api<StatefulSet> = Api::namespaced(self.client(), namespace);
        let what = format!("StatefulSet {namespace}/{name}");
        self.call("get_stateful_set", &what, api.get(name)).await
    }

    /// A token of `account` that is for `audience` alone.
    pub(super) async fn token(
        &self,
        account: &Account,
        audience: String,
    ) -> Result<String, Failure> {
        let api: Api<ServiceAccount> = Api::namespaced(self.client(), &account.namespace);
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: vec![audience],
                expiration_seconds: Some(i64::from(TOKEN_SECONDS)),
                bound_object_ref: None,
            },
            ..TokenRequest::default()
        };
        let what = format!("ServiceAccount {}/{}", account.namespace, account.name);
        let post = PostParams::default();
        let call = api.create_token_request(&account.name, &post, &request);
        let answer = self.call("request_token", &what, call).await?;
        let token = answer.status.map(|status| status.token).unwrap_or_default();
        if token.is_empty() {
            return Err(Failure::Failed(format!("the apiserver gave no token of {what}")));
        }
        Ok(token)
    }
}

impl std::fmt::Debug for Apiserver {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Apiserver")
    }
}

/// Namespace and name; what the apiserver gives out has both.
pub(super) fn of(metadata: &kube::api::ObjectMeta) -> (&str, &str) {
    (
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() }
}

fn json_patch(patch: Value) -> Result<Patch<()>, Failure> {
    serde_json::from_value(patch)
        .map(Patch::Json)
        .map_err(|error| Failure::Failed(format!("the patch is none: {error}")))
}

/// Why `what` cannot be watched, and what to do about it.
pub(super) fn unwatched(what: &str, namespace: Option<&str>, error: &watcher::Error) -> String {
    let of = namespace.map_or("all namespaces".to_owned(), |name| format!("namespace {name}"));
    let (watcher::Error::InitialListFailed(cause)
    | watcher::Error::WatchStartFailed(cause)
    | watcher::Error::WatchFailed(cause)) = error
    else {
        return format!("watching the {what} of {of}: {error}");
    };
    match cause {
        kube::Error::Api(status) if status.code == 403 => format!(
            "not allowed to list and watch the {what} of {of}: {}; give the reconciler's service \
             account the roles of deploy/ there",
            status.message
        ),
        _ => format!("watching the {what} of {of}: {error}"),
    }
}

/// What an error means.
fn failure(kind: &'static str, what: &str, error: &kube::Error) -> Failure {
    let kube::Error::Api(status) = error else {
        return Failure::Failed(format!(
            "the apiserver cannot be asked for {kind} of {what}: {error}"
        ));
    };
    let message = format!("{kind} of {what}: {}", status.message);
    match status.code {
        // 422 is what a test in a JSON patch answers that does not hold.
        409 | 410 => Failure::Conflict(message),
        422 if kind.starts_with("patch_") => Failure::Conflict(message),
        404 => Failure::NotFound(message),
        403 => Failure::Failed(format!(
            "{message}; give the reconciler's service account the roles of deploy/"
        )),
        _ => Failure::Failed(message),
    }
}
