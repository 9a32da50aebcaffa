//! Waits for the next change of an EndpointSlice of the namespace, while a node drains.

use std::pin::pin;

use futures_util::StreamExt;
use futures_util::future::pending;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::WatchParams;

use crate::apiserver::Apiserver;
use stayput_kube_access::read_limits::WATCH_SECONDS;

/// Completes once an EndpointSlice differs from the list of this version. Never completes without a version,
/// or if EndpointSlices cannot be watched: then the next reconcile lists them again.
pub(crate) async fn wait_for_endpoints(api: Apiserver, namespace: String, since: Option<String>) {
    let Some(version) = since else { return pending().await };
    let slices: Api<EndpointSlice> = Api::namespaced(api.client(), &namespace);
    let params = WatchParams::default().timeout(WATCH_SECONDS);
    let Ok(changes) = slices.watch(&params, &version).await else {
        return pending().await;
    };
    match pin!(changes).next().await {
        Some(Ok(_)) => {}
        Some(Err(_)) | None => pending().await,
    }
}
