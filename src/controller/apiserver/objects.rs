//! Calls for the objects of declared clusters, for certificates, and for the keys that tokens are signed
//! with.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use kube::Api;
use kube::api::{
    ApiResource, DynamicObject, ListParams, ObjectList, ObjectMeta, Patch, PatchParams,
};
use kube::client::Body;
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};
use stayput_declare::{CLUSTER, Kind};
use stayput_http::https::answer_time;

use crate::apiserver::{ApiError, Apiserver, ByName, FIELD_MANAGER, only, params};

fn resource(kind: Kind) -> ApiResource {
    match kind {
        Kind::Secret => ApiResource::erase::<Secret>(&()),
        Kind::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
        Kind::Service => ApiResource::erase::<Service>(&()),
        Kind::StatefulSet => ApiResource::erase::<StatefulSet>(&()),
    }
}

/// Name, uid and version of an object as it was read.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    uid: Option<String>,
    resource_version: Option<String>,
}

impl Version {
    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
        }
    }
}

impl Apiserver {
    fn objects(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client(), namespace, &resource(kind))
    }

    /// The object of this name, if it exists.
    pub(crate) async fn object(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<DynamicObject>, ApiError> {
        let api = self.objects(kind, namespace);
        let what = format!("{kind} {namespace}/{name}");
        self.call("get_object", &what, api.get_opt(name)).await
    }

    /// Applies an object. `force` takes over fields that another client has written.
    pub(crate) async fn apply(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        body: &Value,
        force: bool,
    ) -> Result<DynamicObject, ApiError> {
        let api = self.objects(kind, namespace);
        let what = format!("{kind} {namespace}/{name}");
        let params = PatchParams { force, ..PatchParams::apply(FIELD_MANAGER) };
        self.call("apply_object", &what, api.patch(name, &params, &Patch::Apply(body))).await
    }

    /// All StatefulSets with the label of a declared cluster.
    pub(crate) async fn stateful_sets(
        &self,
        namespace: &str,
        cluster: &str,
    ) -> Result<ObjectList<StatefulSet>, ApiError> {
        let api: Api<StatefulSet> = Api::namespaced(self.client(), namespace);
        let what = format!("StatefulSets of namespace {namespace}");
        self.call("list_stateful_sets", &what, api.list(&labelled(cluster))).await
    }

    /// All Secrets with the label of a declared cluster, as they are now.
    pub(crate) async fn secrets(
        &self,
        namespace: &str,
        cluster: &str,
    ) -> Result<ObjectList<Secret>, ApiError> {
        let api: Api<Secret> = Api::namespaced(self.client(), namespace);
        let what = format!("Secrets of namespace {namespace}");
        self.call("list_secrets", &what, api.list(&labelled(cluster))).await
    }

    /// Name and labels of all volume claims of a namespace, as they are now.
    pub(crate) async fn claims(
        &self,
        namespace: &str,
    ) -> Result<ObjectList<PartialObjectMeta<PersistentVolumeClaim>>, ApiError> {
        let api: Api<PersistentVolumeClaim> = Api::namespaced(self.client(), namespace);
        let what = format!("PersistentVolumeClaims of namespace {namespace}");
        let params = ListParams::default();
        self.call("list_claims", &what, api.list_metadata(&params)).await
    }

    /// All pods of a namespace, as they are now.
    pub(crate) async fn pods(&self, namespace: &str) -> Result<ObjectList<Pod>, ApiError> {
        let api: Api<Pod> = Api::namespaced(self.client(), namespace);
        let what = format!("Pods of namespace {namespace}");
        self.call("list_pods", &what, api.list(&ListParams::default())).await
    }

    /// Lowers the count of a StatefulSet, if it is still the one that was read.
    pub(crate) async fn scale(
        &self,
        namespace: &str,
        there: &Version,
        replicas: u32,
    ) -> Result<(), ApiError> {
        let api: Api<StatefulSet> = Api::namespaced(self.client(), namespace);
        let what = format!("StatefulSet {namespace}/{}", there.name);
        let patch = json!({
            "metadata": { "uid": there.uid, "resourceVersion": there.resource_version },
            "spec": { "replicas": replicas },
        });
        let (params, patch) = (params(), Patch::Merge(&patch));
        let call = api.patch(&there.name, &params, &patch);
        self.call("scale_stateful_set", &what, call).await.map(drop)
    }

    /// Deletes a StatefulSet, if it is still the one that was read.
    pub(crate) async fn delete_stateful_set(
        &self,
        namespace: &str,
        there: &Version,
    ) -> Result<(), ApiError> {
        let api: Api<StatefulSet> = Api::namespaced(self.client(), namespace);
        let what = format!("StatefulSet {namespace}/{}", there.name);
        let params = only(there.uid.clone(), there.resource_version.clone());
        self.call("delete_stateful_set", &what, api.delete(&there.name, &params)).await.map(drop)
    }

    /// Deletes a Secret, if it is still the one with this uid.
    pub(crate) async fn delete_secret(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<(), ApiError> {
        let api: Api<Secret> = Api::namespaced(self.client(), namespace);
        let what = format!("Secret {namespace}/{name}");
        let params = only(Some(uid.to_owned()), None);
        self.call("delete_secret", &what, api.delete(name, &params)).await.map(drop)
    }
}

/// Selects the objects of a declared cluster. Names no resource version: the answer is from the store, not
/// from the apiserver's cache.
fn labelled(cluster: &str) -> ListParams {
    ListParams::default().labels(&format!("{CLUSTER}={cluster}"))
}

/// An answer with plain text instead of a Kubernetes object.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) text: String,
    /// Time of the apiserver's clock in the answer, in seconds since 1970.
    pub(crate) date: Option<u64>,
}

impl Apiserver {
    /// Changes a Secret or a ConfigMap by a merge patch with the version that was read.
    pub(crate) async fn renew<K: ByName>(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<K, ApiError> {
        let api: Api<K> = Api::namespaced(self.client(), namespace);
        let what = format!("{} {namespace}/{name}", K::kind(&()));
        self.call("renew", &what, api.patch(name, &params(), &Patch::Merge(patch))).await
    }

    /// The document that the apiserver serves at this path.
    pub(crate) async fn document(&self, path: &'static str) -> Result<Document, ApiError> {
        let client = self.client();
        let get = async move {
            let request = http::Request::get(path).body(Body::empty());
            let answer = client.send(request.map_err(kube::Error::HttpError)?).await?;
            let date = answer_time(answer.headers());
            let status = answer.status();
            let body = http_body_util::BodyExt::collect(answer.into_body()).await?.to_bytes();
            let text = String::from_utf8_lossy(&body).into_owned();
            if status.is_success() {
                Ok(Document { text, date })
            } else {
                let message = format!("answered {status}");
                let status = kube::core::Status::failure(&message, status.as_str())
                    .with_code(status.as_u16());
                Err(kube::Error::Api(status.boxed()))
            }
        };
        self.call("get_document", path, get).await
    }
}
