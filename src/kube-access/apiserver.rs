//! The client of the apiserver, for the reconciler and for `kubectl stayput`: each call is bounded in time, and
//! its error says what to do. The reconciler counts its calls, and repeats none in secret.

mod error;

use std::fmt::{self, Debug};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, ObjectList, Patch, PatchParams,
    PostParams,
};
use kube::client::Body;
use kube::core::{PartialObjectMeta, Status};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use stayput_http::https::answer_time;
use tokio::time::timeout;

pub use self::error::{ApiError, root_cause};
use crate::names::{KUBECTL, is_object_name, reconciler};

/// The program that calls the apiserver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    Reconciler,
    /// A person, with `kubectl stayput`.
    Kubectl,
}

impl Caller {
    const fn field_manager(self) -> &'static str {
        match self {
            Self::Reconciler => reconciler::NAME,
            Self::Kubectl => KUBECTL,
        }
    }

    /// Time limit of one call.
    const fn time_limit(self) -> Duration {
        match self {
            Self::Reconciler => Duration::from_secs(10),
            Self::Kubectl => Duration::from_secs(30),
        }
    }
}

/// One kind of call, as error messages, metrics and RBAC rules name it.
#[derive(Debug, Clone)]
pub struct Call {
    caller: Caller,
    verb: &'static str,
    /// Plural and group, such as `statefulsets.apps`; or the path of a document.
    resource: String,
    subresource: Option<&'static str>,
    /// Name of the object; absent in a call about all objects.
    name: Option<String>,
    /// Namespace of the objects; absent in a call about the whole Kubernetes cluster.
    namespace: Option<String>,
    is_dry_run: bool,
}

impl Call {
    /// A call about the object with this name.
    pub fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// A call about this part of the object.
    pub fn subresource(self, subresource: &'static str) -> Self {
        Self { subresource: Some(subresource), ..self }
    }

    /// Name of the call in metrics, such as `try_to_patch_pods_resize`.
    fn label(&self) -> String {
        let is_document = self.resource.starts_with('/');
        let ends_at = if is_document { None } else { self.resource.find('.') };
        let resource = &self.resource[..ends_at.unwrap_or(self.resource.len())];
        let resource = resource.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let prefix = if self.is_dry_run { "try_to_" } else { "" };
        let mut label = format!("{prefix}{}_{}", self.verb, resource.trim_matches('_'));
        if let Some(subresource) = self.subresource {
            label += "_";
            label += subresource;
        }
        label
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if let Some(subresource) = self.subresource {
            write!(f, "/{subresource}")?;
        }
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}")?,
            None => f.write_str(" in the whole cluster")?,
        }
        f.write_str(if self.is_dry_run { " (dry run)" } else { "" })
    }
}

/// Counts calls.
pub trait CallCounter: Send + Sync {
    /// Counts a call by verb and resource, such as `get_pods`. A conflict is a write that another client has
    /// overtaken.
    fn count(&self, call: &str, is_good: bool, is_conflict: bool);
}

/// The apiserver, for one program.
#[derive(Clone)]
pub struct Apiserver {
    client: Client,
    caller: Caller,
    counter: Option<Arc<dyn CallCounter>>,
}

impl Apiserver {
    /// The apiserver for the reconciler.
    pub fn new(client: Client, counter: Arc<impl CallCounter + 'static>) -> Self {
        Self { client, caller: Caller::Reconciler, counter: Some(counter) }
    }

    /// The apiserver for `kubectl stayput`.
    pub const fn for_kubectl(client: Client) -> Self {
        Self { client, caller: Caller::Kubectl, counter: None }
    }

    /// The client for watches and events, which are not single calls.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The objects of a kind in one namespace.
    pub fn objects<K>(&self, namespace: &str) -> Objects<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let api = Api::namespaced(self.client(), namespace);
        self.objects_of(api, &ApiResource::erase::<K>(&()), Some(namespace))
    }

    /// The objects of a kind in all namespaces, or without a namespace.
    pub fn everywhere<K: Resource<DynamicType = ()>>(&self) -> Objects<K> {
        self.objects_of(Api::all(self.client()), &ApiResource::erase::<K>(&()), None)
    }

    /// The objects of a kind that is known only at run time, in one namespace.
    pub fn dynamic(&self, kind: &ApiResource, namespace: &str) -> Objects<DynamicObject> {
        let api = Api::namespaced_with(self.client(), namespace, kind);
        self.objects_of(api, kind, Some(namespace))
    }

    fn objects_of<K>(
        &self,
        api: Api<K>,
        kind: &ApiResource,
        namespace: Option<&str>,
    ) -> Objects<K> {
        let ApiResource { plural, group, .. } = kind;
        let resource = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
        let namespace = namespace.map(str::to_owned);
        Objects { server: self.clone(), api, resource, namespace, is_dry_run: false }
    }

    /// True if the apiserver can change CPU and memory of a living pod.
    pub async fn serves_resize(&self) -> Result<bool, ApiError> {
        let call = self.about("discover", "pods");
        let resources = self.call(call, self.client.list_core_api_resources("v1")).await?;
        Ok(resources.resources.iter().any(|resource| resource.name == "pods/resize"))
    }

    /// The text of the document that the apiserver serves at this path.
    pub async fn document(&self, path: &str) -> Result<String, ApiError> {
        let get = async {
            let answer = self.send(path).await?;
            let status = answer.status();
            let body = http_body_util::BodyExt::collect(answer.into_body()).await?.to_bytes();
            let text = String::from_utf8_lossy(&body).into_owned();
            if status.is_success() {
                return Ok(text);
            }
            // Any object of a proxy is a Status without a message.
            let refusal = serde_json::from_str(&text).ok();
            let refusal = refusal.filter(|refusal: &Status| !refusal.message.is_empty());
            let refusal = refusal
                .unwrap_or_else(|| Status::failure(&format!("answered {status}"), status.as_str()));
            Err(kube::Error::Api(refusal.with_code(status.as_u16()).boxed()))
        };
        self.call(self.about("get", path), get).await
    }

    /// Time of the apiserver's clock in seconds since 1970, from the date of an answer; a refusal has one, too.
    pub async fn time(&self) -> Result<Option<u64>, ApiError> {
        let get = async { Ok(answer_time(self.send("/version").await?.headers())) };
        self.call(self.about("get", "/version"), get).await
    }

    async fn send(&self, path: &str) -> kube::Result<http::Response<Body>> {
        let request = http::Request::get(path).body(Body::empty());
        self.client.send(request.map_err(kube::Error::HttpError)?).await
    }

    fn about(&self, verb: &'static str, resource: &str) -> Call {
        Call {
            caller: self.caller,
            verb,
            resource: resource.to_owned(),
            subresource: None,
            name: None,
            namespace: None,
            is_dry_run: false,
        }
    }

    /// The result of a call. Its future is large, and so on the heap.
    fn call<T>(
        &self,
        call: Call,
        answer: impl Future<Output = kube::Result<T>>,
    ) -> Pin<Box<impl Future<Output = Result<T, ApiError>>>> {
        Box::pin(async move {
            let result = match timeout(self.caller.time_limit(), answer).await {
                Ok(answer) => answer.map_err(|error| ApiError::of(&call, error)),
                Err(_) => Err(ApiError::Timeout { call: Box::new(call.clone()) }),
            };
            if let Some(counter) = &self.counter {
                let is_conflict = result.as_ref().is_err_and(ApiError::is_conflict);
                counter.count(&call.label(), result.is_ok(), is_conflict);
            }
            result
        })
    }
}

impl Debug for Apiserver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Apiserver")
    }
}

/// The objects of one kind, for calls.
#[derive(Debug)]
pub struct Objects<K> {
    server: Apiserver,
    api: Api<K>,
    /// Plural and group.
    resource: String,
    namespace: Option<String>,
    is_dry_run: bool,
}

impl<K> Objects<K> {
    /// Makes each write a dry run: the apiserver answers as if it were carried out.
    #[must_use]
    pub fn dry_run(self, is_dry_run: bool) -> Self {
        Self { is_dry_run, ..self }
    }

    /// The objects, for calls that are not in this module, and for watches.
    pub const fn api(&self) -> &Api<K> {
        &self.api
    }

    /// A call about these objects.
    pub fn about(&self, verb: &'static str) -> Call {
        let (namespace, is_dry_run) = (self.namespace.clone(), self.is_dry_run);
        Call { namespace, is_dry_run, ..self.server.about(verb, &self.resource) }
    }

    /// A call that only reads: it is never a dry run.
    fn reading(&self, verb: &'static str) -> Call {
        Call { is_dry_run: false, ..self.about(verb) }
    }

    /// The result of a call, bounded in time and counted.
    pub fn call<T>(
        &self,
        call: Call,
        answer: impl Future<Output = kube::Result<T>>,
    ) -> Pin<Box<impl Future<Output = Result<T, ApiError>>>> {
        self.server.call(call, answer)
    }

    fn patch_params(&self) -> PatchParams {
        PatchParams {
            dry_run: self.is_dry_run,
            field_manager: Some(self.server.caller.field_manager().to_owned()),
            ..PatchParams::default()
        }
    }

    /// Parameters of a call that creates or replaces an object.
    pub fn post_params(&self) -> PostParams {
        let field_manager = Some(self.server.caller.field_manager().to_owned());
        PostParams { dry_run: self.is_dry_run, field_manager }
    }
}

impl<K: Clone + Debug + DeserializeOwned> Objects<K> {
    /// One object as it is now.
    pub async fn get(&self, name: &str) -> Result<K, ApiError> {
        self.call(self.reading("get").named(name), self.api.get(name)).await
    }

    /// One object, if it exists. One with a name that no object can have counts as absent.
    pub async fn find(&self, name: &str) -> Result<Option<K>, ApiError> {
        if !is_object_name(name) {
            return Ok(None);
        }
        self.call(self.reading("get").named(name), self.api.get_opt(name)).await
    }

    /// All objects that the parameters select.
    pub async fn list(&self, params: &ListParams) -> Result<ObjectList<K>, ApiError> {
        self.call(self.reading("list"), self.api.list(params)).await
    }

    /// Names, labels and annotations of all objects that the parameters select.
    pub async fn list_metadata(
        &self,
        params: &ListParams,
    ) -> Result<ObjectList<PartialObjectMeta<K>>, ApiError> {
        self.call(self.reading("list"), self.api.list_metadata(params)).await
    }

    /// Creates an object.
    pub async fn create(&self, object: &K) -> Result<K, ApiError>
    where
        K: Serialize,
    {
        self.call(self.about("create"), self.api.create(&self.post_params(), object)).await
    }

    /// Changes an object by a JSON patch.
    pub async fn patch(&self, name: &str, patch: json_patch::Patch) -> Result<K, ApiError> {
        self.send("patch", name, &self.patch_params(), &Patch::Json(patch)).await
    }

    /// Changes an object by a merge patch.
    pub async fn merge(&self, name: &str, patch: &Value) -> Result<K, ApiError> {
        self.send("patch", name, &self.patch_params(), &Patch::Merge(patch.clone())).await
    }

    /// Applies an object. `force` takes over fields that another client has written.
    pub async fn apply(&self, name: &str, object: &Value, force: bool) -> Result<K, ApiError> {
        let params = PatchParams { force, ..self.patch_params() };
        self.send("apply", name, &params, &Patch::Apply(object.clone())).await
    }

    async fn send(
        &self,
        verb: &'static str,
        name: &str,
        params: &PatchParams,
        patch: &Patch<Value>,
    ) -> Result<K, ApiError> {
        self.call(self.about(verb).named(name), self.api.patch(name, params, patch)).await
    }

    /// Changes a part of an object by a JSON patch.
    pub async fn patch_subresource(
        &self,
        subresource: &'static str,
        name: &str,
        patch: json_patch::Patch,
    ) -> Result<K, ApiError> {
        let (params, patch) = (self.patch_params(), Patch::Json::<()>(patch));
        let call = self.about("patch").subresource(subresource).named(name);
        self.call(call, self.api.patch_subresource(subresource, name, &params, &patch)).await
    }

    /// Replaces the status, on the version that the object has.
    pub async fn replace_status(&self, name: &str, object: &K) -> Result<K, ApiError>
    where
        K: Serialize,
    {
        let call = self.about("update").subresource("status").named(name);
        self.call(call, self.api.replace_status(name, &self.post_params(), object)).await
    }

    /// Deletes an object, if the preconditions hold.
    pub async fn delete(&self, name: &str, params: DeleteParams) -> Result<(), ApiError> {
        let params = DeleteParams { dry_run: self.is_dry_run, ..params };
        let deleted = self.api.delete(name, &params);
        self.call(self.about("delete").named(name), deleted).await.map(drop)
    }
}

#[cfg(test)]
mod tests;
