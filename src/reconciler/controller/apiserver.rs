//! Every call to the apiserver: bounded in time, counted, and with errors that say what to do.

mod error;
mod objects;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams, ObjectList, Patch, PatchParams, PostParams};
use serde_json::Value;
use tokio::time::timeout;

use super::metrics::{Metrics, Side};
use super::settings::Account;
use crate::cluster::SearchCluster;

pub(super) use error::{ApiError, watch_error};

/// How long one call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Our name in managed fields, events and tokens.
pub(super) const FIELD_MANAGER: &str = "stayput-reconciler";

/// How long requested tokens are to live, in seconds. Each is for one manager only. Managers refuse
/// tokens that are valid for more than an hour; their clocks may differ from the apiserver's.
pub(super) const TOKEN_SECONDS: u32 = 50 * 60;

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
        object: &str,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, ApiError> {
        let result = match timeout(CALL_TIMEOUT, call).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(ApiError::of(kind, object, error)),
            Err(_) => Err(ApiError::Timeout {
                call: kind,
                object: object.to_owned(),
                seconds: CALL_TIMEOUT.as_secs(),
            }),
        };
        self.metrics.count_request(Side::Apiserver, kind, result.is_ok());
        if result.as_ref().is_err_and(ApiError::is_conflict) {
            self.metrics.count_conflict();
        }
        result
    }

    pub(super) async fn cluster(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<SearchCluster, ApiError> {
        let api: Api<SearchCluster> = Api::namespaced(self.client(), namespace);
        let what = format!("SearchCluster {namespace}/{name}");
        self.call("get_cluster", &what, api.get(name)).await
    }

    /// The live state of a SearchCluster that is known.
    pub(super) async fn cluster_of(
        &self,
        cluster: &SearchCluster,
    ) -> Result<SearchCluster, ApiError> {
        let (namespace, name) = namespaced_name(&cluster.metadata);
        self.cluster(namespace, name).await
    }

    /// Replaces the status, on the version that `cluster` has.
    pub(super) async fn write_status(
        &self,
        cluster: &SearchCluster,
    ) -> Result<SearchCluster, ApiError> {
        let (namespace, name) = namespaced_name(&cluster.metadata);
        let api: Api<SearchCluster> = Api::namespaced(self.client(), namespace);
        let what = format!("the status of SearchCluster {namespace}/{name}");
        let post =
            PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
        self.call("write_status", &what, api.replace_status(name, &post, cluster)).await
    }

    /// Patches metadata, by a JSON patch.
    pub(super) async fn patch_cluster(
        &self,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<SearchCluster, ApiError> {
        let api: Api<SearchCluster> = Api::namespaced(self.client(), namespace);
        let what = format!("SearchCluster {namespace}/{name}");
        let patch = json_patch(patch)?;
        self.call("patch_cluster", &what, api.patch(name, &params(), &patch)).await
    }

    pub(super) async fn pod(&self, namespace: &str, name: &str) -> Result<Pod, ApiError> {
        let api: Api<Pod> = Api::namespaced(self.client(), namespace);
        self.call("get_pod", &format!("Pod {namespace}/{name}"), api.get(name)).await
    }

    /// Patches metadata, by a JSON patch.
    pub(super) async fn patch_pod(
        &self,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<Pod, ApiError> {
        let api: Api<Pod> = Api::namespaced(self.client(), namespace);
        let what = format!("Pod {namespace}/{name}");
        let patch = json_patch(patch)?;
        self.call("patch_pod", &what, api.patch(name, &params(), &patch)).await
    }

    pub(super) async fn secret(&self, namespace: &str, name: &str) -> Result<Secret, ApiError> {
        let api: Api<Secret> = Api::namespaced(self.client(), namespace);
        self.call("get_secret", &format!("Secret {namespace}/{name}"), api.get(name)).await
    }

    pub(super) async fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<ConfigMap, ApiError> {
        let api: Api<ConfigMap> = Api::namespaced(self.client(), namespace);
        self.call("get_config_map", &format!("ConfigMap {namespace}/{name}"), api.get(name)).await
    }

    pub(super) async fn stateful_set(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<StatefulSet, ApiError> {
        let api: Api<StatefulSet> = Api::namespaced(self.client(), namespace);
        let what = format!("StatefulSet {namespace}/{name}");
        self.call("get_stateful_set", &what, api.get(name)).await
    }

    /// All EndpointSlices of a namespace.
    pub(super) async fn endpoint_slices(
        &self,
        namespace: &str,
    ) -> Result<ObjectList<EndpointSlice>, ApiError> {
        let api: Api<EndpointSlice> = Api::namespaced(self.client(), namespace);
        let what = format!("EndpointSlices of namespace {namespace}");
        self.call("list_endpoint_slices", &what, api.list(&ListParams::default())).await
    }

    /// A token of `account` that is for `audience` alone, and how long it lives.
    pub(super) async fn token(
        &self,
        account: &Account,
        audience: String,
    ) -> Result<(String, Duration), ApiError> {
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
        // The apiserver may give less than it is asked for.
        let seconds = answer.spec.expiration_seconds.and_then(|all| u64::try_from(all).ok());
        let life = Duration::from_secs(seconds.unwrap_or(u64::from(TOKEN_SECONDS)));
        let token = answer.status.map(|status| status.token).unwrap_or_default();
        if token.is_empty() {
            return Err(ApiError::EmptyToken { object: what });
        }
        Ok((token, life))
    }
}

impl std::fmt::Debug for Apiserver {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Apiserver")
    }
}

/// Namespace and name; what the apiserver returns has both.
pub(super) fn namespaced_name(metadata: &kube::api::ObjectMeta) -> (&str, &str) {
    (
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() }
}

fn json_patch(patch: Value) -> Result<Patch<()>, ApiError> {
    serde_json::from_value(patch).map(Patch::Json).map_err(ApiError::InvalidPatch)
}
