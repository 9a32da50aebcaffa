//! Every call to the apiserver: bounded in time, counted, never repeated in secret, and with errors that say
//! what to do.

mod error;
mod objects;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use json_patch::PatchOperation;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{
    ConfigMap, Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::{
    Api, DeleteParams, ListParams, ObjectList, Patch, PatchParams, PostParams, Preconditions,
};
use kube::core::PartialObjectMeta;
use serde::de::DeserializeOwned;
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::names::is_object_name;
use stayput_kube_access::patch_operations::{has_uid, place, replace};
use stayput_kube_access::read_limits::limited;
use tokio::time::timeout;

pub(super) use crate::apiserver::error::{ApiError, watch_error};
pub(super) use crate::apiserver::objects::Version;
use crate::metrics::{Metrics, Side};
use crate::run::Account;

/// Time limit of one call.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Our name in managed fields, events and tokens.
pub(super) const FIELD_MANAGER: &str = "stayput-reconciler";

/// Requested lifetime of tokens, in seconds. Each is for one manager only. Managers refuse tokens that are
/// valid for more than an hour; their clocks may differ from the apiserver's.
pub(super) const TOKEN_SECONDS: u32 = 50 * 60;

/// A type of object that is read one at a time, by its name in a namespace.
pub(super) trait ByName:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned
{
    /// Name of the call in the metrics.
    const CALL: &'static str;
}

impl ByName for SearchCluster {
    const CALL: &'static str = "get_cluster";
}

impl ByName for Pod {
    const CALL: &'static str = "get_pod";
}

impl ByName for PersistentVolumeClaim {
    const CALL: &'static str = "get_claim";
}

impl ByName for Secret {
    const CALL: &'static str = "get_secret";
}

impl ByName for ConfigMap {
    const CALL: &'static str = "get_config_map";
}

impl ByName for StatefulSet {
    const CALL: &'static str = "get_stateful_set";
}

impl ByName for ControllerRevision {
    const CALL: &'static str = "get_controller_revision";
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

    /// The client for watches and events, which are not single calls.
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

    /// The live state of a known SearchCluster.
    pub(super) async fn cluster_of(
        &self,
        cluster: &SearchCluster,
    ) -> Result<SearchCluster, ApiError> {
        let (namespace, name) = namespaced_name(&cluster.metadata);
        self.get(namespace, name).await
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

    /// Changes parts of the status by operations of a JSON patch, on the version that `metadata` has.
    pub(super) async fn change_status(
        &self,
        metadata: &ObjectMeta,
        change: &[PatchOperation],
    ) -> Result<SearchCluster, ApiError> {
        let (namespace, name) = namespaced_name(metadata);
        let api: Api<SearchCluster> = Api::namespaced(self.client(), namespace);
        let what = format!("the status of SearchCluster {namespace}/{name}");
        // Another version is a conflict, also if it comes while the patch is applied.
        let version =
            replace(place(["metadata", "resourceVersion"]), metadata.resource_version.as_deref());
        let is_ours = [has_uid(metadata.uid.as_deref()), version];
        let operations = is_ours.into_iter().chain(change.iter().cloned()).collect();
        let patch = Patch::Json::<()>(json_patch::Patch(operations));
        self.call("write_status", &what, api.patch_status(name, &params(), &patch)).await
    }

    /// Changes a SearchCluster's metadata by a JSON patch.
    pub(super) async fn patch_cluster(
        &self,
        namespace: &str,
        name: &str,
        patch: json_patch::Patch,
    ) -> Result<SearchCluster, ApiError> {
        let api: Api<SearchCluster> = Api::namespaced(self.client(), namespace);
        let what = format!("SearchCluster {namespace}/{name}");
        let patch = Patch::Json::<()>(patch);
        self.call("patch_cluster", &what, api.patch(name, &params(), &patch)).await
    }

    /// One object of a namespace, as it is now.
    pub(super) async fn get<K: ByName>(&self, namespace: &str, name: &str) -> Result<K, ApiError> {
        let api: Api<K> = Api::namespaced(self.client(), namespace);
        let what = format!("{} {namespace}/{name}", K::kind(&()));
        self.call(K::CALL, &what, api.get(name)).await
    }

    /// One object of a namespace, if it exists. One with a name that no object can have counts as absent.
    pub(super) async fn find<K: ByName>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<K>, ApiError> {
        if !is_object_name(name) {
            return Ok(None);
        }
        match self.get(namespace, name).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Changes a pod, by a JSON patch.
    pub(super) async fn patch_pod(
        &self,
        namespace: &str,
        name: &str,
        patch: json_patch::Patch,
    ) -> Result<Pod, ApiError> {
        self.send_pod_patch("patch_pod", namespace, name, patch, &params()).await
    }

    /// Dry run of [`Self::patch_pod`]: the pod as it would be, or the refusal.
    pub(super) async fn try_to_patch_pod(
        &self,
        namespace: &str,
        name: &str,
        patch: json_patch::Patch,
    ) -> Result<Pod, ApiError> {
        self.send_pod_patch("try_to_patch_pod", namespace, name, patch, &dry_run()).await
    }

    async fn send_pod_patch(
        &self,
        call: &'static str,
        namespace: &str,
        name: &str,
        patch: json_patch::Patch,
        params: &PatchParams,
    ) -> Result<Pod, ApiError> {
        let api: Api<Pod> = Api::namespaced(self.client(), namespace);
        let what = format!("Pod {namespace}/{name}");
        let patch = Patch::Json::<()>(patch);
        self.call(call, &what, api.patch(name, params, &patch)).await
    }

    /// Changes CPU and memory of a living pod by a JSON patch.
    pub(super) async fn resize_pod(
        &self,
        namespace: &str,
        name: &str,
        patch: json_patch::Patch,
    ) -> Result<Pod, ApiError> {
        self.send_pod_resize("patch_pod_resize", namespace, name, patch, &params()).await
    }

    /// Dry run of [`Self::resize_pod`].
    pub(super) async fn try_to_resize_pod(
        &self,
        namespace: &str,
        name: &str,
        patch: json_patch::Patch,
    ) -> Result<(), ApiError> {
        let call = "try_to_patch_pod_resize";
        self.send_pod_resize(call, namespace, name, patch, &dry_run()).await.map(drop)
    }

    async fn send_pod_resize(
        &self,
        call: &'static str,
        namespace: &str,
        name: &str,
        patch: json_patch::Patch,
        params: &PatchParams,
    ) -> Result<Pod, ApiError> {
        let api: Api<Pod> = Api::namespaced(self.client(), namespace);
        let what = format!("pods/resize of {namespace}/{name}");
        let patch = Patch::Json::<()>(patch);
        self.call(call, &what, api.patch_subresource("resize", name, params, &patch)).await
    }

    /// Deletes a pod if it is still this one, at this version.
    pub(super) async fn delete_pod(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
        version: u64,
    ) -> Result<(), ApiError> {
        let api: Api<Pod> = Api::namespaced(self.client(), namespace);
        let options = only(Some(uid.to_owned()), Some(version.to_string()));
        let what = format!("Pod {namespace}/{name}");
        self.call("delete_pod", &what, api.delete(name, &options)).await.map(drop)
    }

    /// Dry run of [`Self::delete_pod`].
    pub(super) async fn try_to_delete_pod(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<(), ApiError> {
        let api: Api<Pod> = Api::namespaced(self.client(), namespace);
        let options = DeleteParams { dry_run: true, ..only(Some(uid.to_owned()), None) };
        let what = format!("Pod {namespace}/{name}");
        self.call("try_to_delete_pod", &what, api.delete(name, &options)).await.map(drop)
    }

    /// Dry run of creating this pod. The apiserver reports that the name is taken only after everything else
    /// that could refuse the pod: that answer counts as success.
    pub(super) async fn try_to_create_pod(
        &self,
        namespace: &str,
        pod: &Pod,
    ) -> Result<(), ApiError> {
        let api: Api<Pod> = Api::namespaced(self.client(), namespace);
        let post = PostParams { dry_run: true, field_manager: Some(FIELD_MANAGER.into()) };
        let what = format!("Pod {namespace}/{}", pod.metadata.name.as_deref().unwrap_or_default());
        let create = async {
            match api.create(&post, pod).await {
                Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
                done => done.map(drop),
            }
        };
        self.call("try_to_create_pod", &what, create).await
    }

    pub(super) async fn volume(&self, name: &str) -> Result<PersistentVolume, ApiError> {
        let api: Api<PersistentVolume> = Api::all(self.client());
        self.call("get_volume", &format!("PersistentVolume {name}"), api.get(name)).await
    }

    pub(super) async fn node(&self, name: &str) -> Result<Node, ApiError> {
        let api: Api<Node> = Api::all(self.client());
        self.call("get_node", &format!("Node {name}"), api.get(name)).await
    }

    /// Names and labels of all Kubernetes nodes, as the apiserver has them in memory.
    pub(super) async fn nodes(&self) -> Result<ObjectList<PartialObjectMeta<Node>>, ApiError> {
        let api: Api<Node> = Api::all(self.client());
        let params = ListParams { resource_version: Some("0".into()), ..ListParams::default() };
        self.call("list_nodes", "the Kubernetes nodes", api.list_metadata(&params)).await
    }

    /// All pods on a node.
    pub(super) async fn pods_on(&self, node: &str) -> Result<ObjectList<Pod>, ApiError> {
        let api: Api<Pod> = Api::all(self.client());
        let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
        self.call("list_pods_on_node", &format!("the pods on {node}"), api.list(&params)).await
    }

    /// True if the apiserver can change CPU and memory of a living pod.
    pub(super) async fn serves_resize(&self) -> Result<bool, ApiError> {
        let client = self.client();
        let call = client.list_core_api_resources("v1");
        let resources = self.call("discover", "the resources of v1", call).await?.resources;
        Ok(resources.iter().any(|resource| resource.name == "pods/resize"))
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

    /// A token of `account` for `audience` alone, and its lifetime.
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

impl Debug for Apiserver {
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

fn dry_run() -> PatchParams {
    PatchParams { dry_run: true, ..params() }
}

/// Preconditions of a deletion: only the object with this uid, at this version.
fn only(uid: Option<String>, resource_version: Option<String>) -> DeleteParams {
    let preconditions = Some(Preconditions { uid, resource_version });
    DeleteParams { preconditions, ..DeleteParams::default() }
}

/// Limits a connection to the apiserver. Without limits a list, or a watch that is being set up, waits for
/// ever; and a refusal by an overloaded apiserver is repeated 15 times before the caller hears of it.
pub(crate) fn bounded(config: kube::Config) -> kube::Config {
    let mut config = limited(config);
    // The next reconcile, or the watch, retries.
    config.default_retry = false;
    config
}

#[cfg(test)]
mod tests;
