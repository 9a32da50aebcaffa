//! The apiserver, as the controller uses it: limits of its connection, and messages of its watches.

use kube::api::{DeleteParams, ObjectMeta, Preconditions};
use kube::runtime::watcher;
pub(super) use stayput_kube_access::apiserver::{ApiError, Apiserver};
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::read_limits::limited;

/// The live state of a known SearchCluster.
pub(super) async fn read_again(
    api: &Apiserver,
    cluster: &SearchCluster,
) -> Result<SearchCluster, ApiError> {
    let (namespace, name) = namespaced_name(&cluster.metadata);
    api.objects(namespace).get(name).await
}

/// Namespace and name; what the apiserver returns has both.
pub(super) fn namespaced_name(metadata: &ObjectMeta) -> (&str, &str) {
    (
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

/// Preconditions of a deletion: only the object with this uid, at this version.
pub(super) fn only(uid: Option<&str>, resource_version: Option<&str>) -> DeleteParams {
    let preconditions = Preconditions {
        uid: uid.map(str::to_owned),
        resource_version: resource_version.map(str::to_owned),
    };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }
}

/// Limits a connection to the apiserver. Without limits a list, or a watch that is being set up, waits for
/// ever; and a refusal by an overloaded apiserver is repeated 15 times before the caller hears of it.
pub(crate) fn bounded(config: kube::Config) -> kube::Config {
    let mut config = limited(config);
    // The next reconcile, or the watch, retries.
    config.default_retry = false;
    config
}

/// The message for a watch of `what` that fails: why, and what to do about it.
pub(super) fn watch_error(what: &str, namespace: Option<&str>, error: &watcher::Error) -> String {
    let of = namespace.map_or("all namespaces".to_owned(), |name| format!("namespace {name}"));
    let (watcher::Error::InitialListFailed(cause)
    | watcher::Error::WatchStartFailed(cause)
    | watcher::Error::WatchFailed(cause)) = error
    else {
        return format!("cannot watch the {what} of {of}: {error}");
    };
    match cause {
        kube::Error::Api(status) if status.code == 403 => format!(
            "not allowed to list and watch the {what} of {of}: {}; give the reconciler's service \
             account the roles of deploy/ there, as `kubectl stayput init` does in one namespace",
            status.message
        ),
        _ => format!("cannot watch the {what} of {of}: {error}"),
    }
}

#[cfg(test)]
mod tests;
