//! Calls to the apiserver: bounded in time, with errors that say what to do.

pub(crate) mod objects;

use std::fmt;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::Selector;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use stayput_http::https::answer_time;
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{Time, foreign_text};
use tokio::time::timeout;

use crate::error::Exit;
use crate::format::root_cause;
use crate::session::Session;

const APISERVER_ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Our name in `metadata.managedFields`.
const FIELD_MANAGER: &str = "kubectl-stayput";
/// The resource SearchCluster, as RBAC rules name it.
pub(crate) const CLUSTERS: &str = "searchclusters.stayput.dev";
const PODS: &str = "pods";
pub(crate) const STATEFUL_SETS: &str = "statefulsets.apps";
pub(crate) const REVISIONS: &str = "controllerrevisions.apps";

/// One kind of call, as error messages and RBAC rules name it.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    verb: &'static str,
    resource: &'static str,
    /// Name of the object; absent in a call about all objects.
    name: Option<String>,
    /// Namespace of the objects; absent in a call about the whole cluster.
    namespace: Option<String>,
}

impl Operation {
    fn new(verb: &'static str, resource: &'static str, namespace: &str) -> Self {
        Self { verb, resource, name: None, namespace: Some(namespace.to_owned()) }
    }

    /// A call about all namespaces, or about objects without one.
    fn everywhere(verb: &'static str, resource: &'static str) -> Self {
        Self { verb, resource, name: None, namespace: None }
    }

    /// A call about the object with this name.
    fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    pub(crate) fn watch_clusters(namespace: &str) -> Self {
        Self::new("watch", CLUSTERS, namespace)
    }

    pub(crate) fn watch_pods(namespace: &str) -> Self {
        Self::new("watch", PODS, namespace)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, resource, name, namespace } = self;
        let name = name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
        match namespace {
            Some(namespace) => write!(f, "{verb} {resource}{name} in namespace {namespace}"),
            None => write!(f, "{verb} {resource}{name} in the whole cluster"),
        }
    }
}

/// Why a call to the apiserver failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("{}", describe(operation, source))]
    Call { operation: Operation, source: Box<kube::Error> },
    #[error(
        "the apiserver did not answer within {} s: {operation}",
        APISERVER_ANSWER_TIMEOUT.as_secs()
    )]
    Timeout { operation: Operation },
    #[error("the spec of SearchCluster {cluster} is invalid: {}", faults.join("; "))]
    InvalidSpec { cluster: String, faults: Vec<String> },
    #[error("the apiserver's answer has no date that can be read")]
    NoDate,
    #[error("the object cannot be sent: {0}")]
    InvalidObject(#[from] serde_json::Error),
}

impl ApiError {
    pub(crate) fn call(operation: &Operation, source: kube::Error) -> Self {
        Self::Call { operation: operation.clone(), source: Box::new(source) }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Call { source, .. } if matches!(**source, kube::Error::Api(_)) => Exit::Failed,
            Self::Call { .. } | Self::Timeout { .. } => Exit::NotReachable,
            Self::InvalidSpec { .. } | Self::NoDate | Self::InvalidObject(_) => Exit::Failed,
        }
    }

    /// True if the object may have been changed after it was read, so that reading it again may help.
    pub(crate) fn is_conflict(&self) -> bool {
        self.code() == Some(409) || self.is_unprocessable()
    }

    /// True for the answer to a JSON patch whose `test` does not hold, or that would make an object that
    /// the apiserver does not accept.
    pub(crate) fn is_unprocessable(&self) -> bool {
        self.code() == Some(422)
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// True if a retry of a watch would fail in the same way.
    pub(crate) fn is_permanent(&self) -> bool {
        matches!(self.code(), Some(401 | 403 | 404))
    }

    fn code(&self) -> Option<u16> {
        match self {
            Self::Call { source, .. } => match &**source {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The meaning of a failed call, and what to do about it.
fn describe(operation: &Operation, error: &kube::Error) -> String {
    let kube::Error::Api(status) = error else {
        return format!(
            "cannot reach the apiserver to {operation}: {}; check with `kubectl cluster-info`",
            root_cause(error)
        );
    };
    let message = foreign_text(&status.message);
    match status.code {
        401 => format!(
            "the apiserver does not accept your credentials ({message}): log in again, or choose \
             another --context"
        ),
        403 => {
            let Operation { verb, resource, namespace, .. } = operation;
            let role = if namespace.is_some() { "Role there" } else { "ClusterRole" };
            format!(
                "you may not {operation}: ask for a {role} with the verb {verb} on {resource}; the \
                 apiserver says: {message}"
            )
        }
        // A list is empty rather than not found: it is the resource that does not exist.
        404 if matches!((operation.verb, operation.resource), ("list" | "get", CLUSTERS)) => {
            "this Kubernetes has no resource SearchCluster: install the reconciler first, `kubectl \
             apply -k deploy/`"
                .into()
        }
        404 if operation.verb == "list" => {
            format!("this Kubernetes has no {}: {message}", operation.resource)
        }
        404 => format!("it no longer exists: {message}"),
        _ => format!("the apiserver refused to {operation}: {message}"),
    }
}

/// Every SearchCluster of the namespace, by name.
pub(crate) async fn clusters(session: &Session) -> Result<Vec<SearchCluster>, ApiError> {
    let api: Api<SearchCluster> = Api::namespaced(session.client.clone(), &session.namespace);
    let operation = Operation::new("list", CLUSTERS, &session.namespace);
    let list = call(&operation, api.list(&ListParams::default())).await?;
    Ok(list.items.into_iter().map(SearchCluster::completed).collect())
}

/// Every SearchCluster of all namespaces; empty if listing them fails.
pub(crate) async fn clusters_everywhere(session: &Session) -> Vec<SearchCluster> {
    all_clusters(session).await.unwrap_or_default()
}

/// Every SearchCluster of all namespaces.
pub(crate) async fn all_clusters(session: &Session) -> Result<Vec<SearchCluster>, ApiError> {
    let api: Api<SearchCluster> = Api::all(session.client.clone());
    let operation = Operation::everywhere("list", CLUSTERS);
    let list = call(&operation, api.list(&ListParams::default())).await?;
    Ok(list.items.into_iter().map(SearchCluster::completed).collect())
}

/// The pods that the SearchCluster selects.
pub(crate) async fn pods(
    client: &kube::Client,
    cluster: &SearchCluster,
) -> Result<Vec<Pod>, ApiError> {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let params = ListParams::default().labels_from(&selector(cluster)?);
    let operation = Operation::new("list", PODS, namespace);
    Ok(call(&operation, api.list(&params)).await?.items)
}

/// True if CPU and memory of a living pod can be changed.
pub(crate) async fn serves_resize(session: &Session) -> Result<bool, ApiError> {
    let operation = Operation::new("discover", PODS, &session.namespace);
    let resources = call(&operation, session.client.list_core_api_resources("v1")).await?.resources;
    Ok(resources.iter().any(|resource| resource.name == "pods/resize"))
}

/// The selector of the SearchCluster's pods, also if another part of the spec is wrong. Fails without a
/// usable one: an empty selector would select every pod.
pub(crate) fn selector(cluster: &SearchCluster) -> Result<Selector, ApiError> {
    let faults = || cluster.check().err().unwrap_or_default();
    let usable = cluster.salvage().map(|usable| usable.pods);
    usable.ok_or_else(|| ApiError::InvalidSpec {
        cluster: cluster.metadata.name.clone().unwrap_or_default(),
        faults: faults().iter().map(ToString::to_string).collect(),
    })
}

/// Changes a SearchCluster by a JSON patch.
pub(crate) async fn patch_cluster(
    session: &Session,
    name: &str,
    patch: json_patch::Patch,
) -> Result<(), ApiError> {
    let api: Api<SearchCluster> = Api::namespaced(session.client.clone(), &session.namespace);
    let operation = Operation::new("patch", CLUSTERS, &session.namespace).named(name);
    call(&operation, api.patch(name, &params(), &Patch::Json::<()>(patch))).await.map(drop)
}

/// Changes metadata of a pod by a JSON patch.
pub(crate) async fn patch_pod(
    session: &Session,
    name: &str,
    patch: json_patch::Patch,
) -> Result<(), ApiError> {
    let api: Api<Pod> = Api::namespaced(session.client.clone(), &session.namespace);
    let operation = Operation::new("patch", PODS, &session.namespace).named(name);
    call(&operation, api.patch(name, &params(), &Patch::Json::<()>(patch))).await.map(drop)
}

/// Deletes a SearchCluster; succeeds if it is gone already.
pub(crate) async fn delete_cluster(
    session: &Session,
    name: &str,
    params: &DeleteParams,
) -> Result<(), ApiError> {
    let api: Api<SearchCluster> = Api::namespaced(session.client.clone(), &session.namespace);
    let operation = Operation::new("delete", CLUSTERS, &session.namespace).named(name);
    match call(&operation, api.delete(name, params)).await {
        Err(error) if error.code() == Some(404) => Ok(()),
        answer => answer.map(drop),
    }
}

/// Changes metadata of an object by a merge patch; succeeds if it is gone.
pub(crate) async fn merge_patch<K>(
    session: &Session,
    resource: &'static str,
    name: &str,
    patch: &Value,
) -> Result<(), ApiError>
where
    K: Resource<Scope = NamespaceResourceScope> + Clone + fmt::Debug + DeserializeOwned,
    K::DynamicType: Default,
{
    let api: Api<K> = Api::namespaced(session.client.clone(), &session.namespace);
    let operation = Operation::new("patch", resource, &session.namespace).named(name);
    match call(&operation, api.patch_metadata(name, &params(), &Patch::Merge(patch))).await {
        Err(error) if error.code() == Some(404) => Ok(()),
        answer => answer.map(drop),
    }
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() }
}

async fn call<T>(
    operation: &Operation,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, ApiError> {
    match timeout(APISERVER_ANSWER_TIMEOUT, call).await {
        Ok(answer) => answer.map_err(|error| ApiError::call(operation, error)),
        Err(_) => Err(ApiError::Timeout { operation: operation.clone() }),
    }
}

/// A namespace, if it exists.
pub(crate) async fn find_namespace(
    client: &Client,
    name: &str,
) -> Result<Option<Namespace>, ApiError> {
    let api: Api<Namespace> = Api::all(client.clone());
    call(&Operation::new("get", "namespaces", name), api.get_opt(name)).await
}

/// The installed definition of the SearchCluster.
pub(crate) async fn definition(
    client: &Client,
) -> Result<Option<CustomResourceDefinition>, ApiError> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let resource = "customresourcedefinitions.apiextensions.k8s.io";
    call(&Operation::everywhere("get", resource), api.get_opt("searchclusters.stayput.dev")).await
}

/// True if the review allows the access.
pub(crate) async fn review(client: &Client, review: SubjectAccessReview) -> Result<bool, ApiError> {
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    let operation = Operation::everywhere("create", "subjectaccessreviews.authorization.k8s.io");
    let answer = call(&operation, api.create(&PostParams::default(), &review)).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// Time of the apiserver's clock, from the date in its answer.
pub(crate) async fn time(client: &Client) -> Result<Time, ApiError> {
    let operation = Operation::everywhere("get", "/version");
    let request = http::Request::get("/version").body(Body::empty());
    let request = request.map_err(kube::Error::HttpError);
    let request = request.map_err(|error| ApiError::call(&operation, error))?;
    let answer = call(&operation, client.send(request)).await?;
    let seconds = answer_time(answer.headers()).ok_or(ApiError::NoDate)?;
    Ok(Time(seconds * 1000))
}

/// The apiserver's answer at a path that is not about objects.
pub(crate) async fn document(session: &Session, path: &'static str) -> Result<String, ApiError> {
    let operation = Operation::everywhere("get", path);
    let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError);
    let request = request.map_err(|error| ApiError::call(&operation, error))?;
    call(&operation, session.client.request_text(request)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who may patch pods can do more than stop nodes: nobody is told to ask for more than was refused.
    #[test] // proves UPDATE-47
    fn who_may_not_is_told_the_right_that_is_missing() {
        let refused = |operation: &Operation| {
            let status = kube::core::Status::failure("no", "Forbidden").with_code(403);
            ApiError::call(operation, kube::Error::Api(Box::new(status))).to_string()
        };
        for (operation, told) in [
            (
                Operation::new("list", PODS, "search"),
                "you may not list pods in namespace search: ask for a Role there with the verb list on \
                 pods; the apiserver says: no",
            ),
            (
                Operation::new("get", REVISIONS, "search").named("a"),
                "you may not get controllerrevisions.apps a in namespace search: ask for a Role there \
                 with the verb get on controllerrevisions.apps; the apiserver says: no",
            ),
            (
                Operation::everywhere("list", CLUSTERS),
                "you may not list searchclusters.stayput.dev in the whole cluster: ask for a \
                 ClusterRole with the verb list on searchclusters.stayput.dev; the apiserver says: no",
            ),
        ] {
            assert_eq!(refused(&operation), told);
        }
    }
}
