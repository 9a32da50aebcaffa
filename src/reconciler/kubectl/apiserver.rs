//! Calls to the apiserver: bounded in time, with errors that say what to do.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::Selector;
use serde_json::Value;
use tokio::time::timeout;

use super::connect::Session;
use super::failure::Failure;
use crate::cluster::SearchCluster;

/// How long one call may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// What we call ourselves in managed fields.
const MANAGER: &str = "kubectl-stayput";

/// Why a patch was not taken.
pub(super) enum Unpatched {
    /// Somebody else was there first: look again.
    Changed,
    /// Anything else.
    Failure(Failure),
}

/// Every SearchCluster of the namespace, by name.
pub(super) async fn clusters(session: &Session) -> Result<Vec<SearchCluster>, Failure> {
    let api: Api<SearchCluster> = Api::namespaced(session.client.clone(), &session.namespace);
    let what = format!("list searchclusters.stayput.dev in namespace {}", session.namespace);
    Ok(call(&what, api.list(&ListParams::default())).await?.items)
}

/// Every SearchCluster anywhere, if we may look.
pub(super) async fn everywhere(session: &Session) -> Vec<SearchCluster> {
    let api: Api<SearchCluster> = Api::all(session.client.clone());
    call("", api.list(&ListParams::default())).await.map_or(Vec::new(), |list| list.items)
}

/// The pods that the SearchCluster selects.
pub(super) async fn pods(
    client: &kube::Client,
    cluster: &SearchCluster,
) -> Result<Vec<Pod>, Failure> {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let params = ListParams::default().labels_from(&selector(cluster)?);
    let what = format!("list pods in namespace {namespace}");
    Ok(call(&what, api.list(&params)).await?.items)
}

/// What selects the pods. An empty selector would select everything.
pub(super) fn selector(cluster: &SearchCluster) -> Result<Selector, Failure> {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    cluster.check().map(|checked| checked.pods).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Failure::Failed(format!(
            "the spec of SearchCluster {name} is invalid: {}",
            faults.join("; ")
        ))
    })
}

/// Changes metadata of a SearchCluster by a JSON patch.
pub(super) async fn patch_cluster(
    session: &Session,
    name: &str,
    patch: Value,
) -> Result<(), Unpatched> {
    let api: Api<SearchCluster> = Api::namespaced(session.client.clone(), &session.namespace);
    let what = format!("patch searchclusters.stayput.dev in namespace {}", session.namespace);
    patched(&what, api.patch(name, &params(), &json_patch(patch)?)).await
}

/// Changes metadata of a pod by a JSON patch.
pub(super) async fn patch_pod(
    session: &Session,
    name: &str,
    patch: Value,
) -> Result<(), Unpatched> {
    let api: Api<Pod> = Api::namespaced(session.client.clone(), &session.namespace);
    let what = format!("patch pods in namespace {}", session.namespace);
    patched(&what, api.patch(name, &params(), &json_patch(patch)?)).await
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() }
}

fn json_patch(patch: Value) -> Result<Patch<()>, Unpatched> {
    serde_json::from_value(patch).map(Patch::Json).map_err(|error| {
        Unpatched::Failure(Failure::Failed(format!("the patch cannot be written: {error}")))
    })
}

async fn patched<T>(
    what: &str,
    patch: impl Future<Output = kube::Result<T>>,
) -> Result<(), Unpatched> {
    match timeout(PATIENCE, patch).await {
        Ok(Ok(_)) => Ok(()),
        // 422 is what a test in a JSON patch answers that does not hold.
        Ok(Err(kube::Error::Api(status))) if status.code == 409 || status.code == 422 => {
            Err(Unpatched::Changed)
        }
        Ok(Err(error)) => Err(Unpatched::Failure(explain(what, &error))),
        Err(_) => Err(Unpatched::Failure(too_slow(what))),
    }
}

async fn call<T>(what: &str, call: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    match timeout(PATIENCE, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(explain(what, &error)),
        Err(_) => Err(too_slow(what)),
    }
}

fn too_slow(what: &str) -> Failure {
    let seconds = PATIENCE.as_secs();
    Failure::NotReachable(format!("the apiserver did not answer within {seconds} s to: {what}"))
}

/// What an error means for somebody who wanted to do `what`.
pub(super) fn explain(what: &str, error: &kube::Error) -> Failure {
    let kube::Error::Api(status) = error else {
        return Failure::NotReachable(format!(
            "the apiserver cannot be asked to {what}: {}; try `kubectl cluster-info`",
            root_cause(error)
        ));
    };
    match status.code {
        401 => Failure::Failed(format!(
            "the apiserver does not know who you are ({}): log in again, or choose another \
             --context",
            status.message
        )),
        403 => Failure::Failed(format!(
            "you may not {what}: ask for a Role with the verbs get, list, watch and patch on \
             searchclusters (API group stayput.dev) and on pods there; the apiserver says: {}",
            status.message
        )),
        // A list is never not found; its kind can be.
        404 if what.starts_with("list searchclusters") => Failure::Failed(
            "this Kubernetes does not know SearchClusters: install the reconciler first, \
             `kubectl apply -k deploy/`"
                .into(),
        ),
        404 => Failure::Failed(format!("gone in the meantime: {}", status.message)),
        _ => Failure::Failed(format!("the apiserver refused to {what}: {}", status.message)),
    }
}

/// The innermost message: those around it only say that something within failed.
pub(super) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
