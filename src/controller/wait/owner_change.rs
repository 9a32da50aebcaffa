//! Waits for the next edit of a StatefulSet that owns pods, while pods are updated.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::pending;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use tokio::time::{Instant, sleep_until};

use crate::apiserver::Apiserver;
use crate::object_version::is_later;
use stayput_kube_access::read_limits::WATCH_SECONDS;

/// Least time between the begins of two watches: a proxy may end each at once.
const LEAST_BETWEEN: Duration = Duration::from_secs(10);

/// Completes with the name of a StatefulSet that differs from the version that was read. Never completes if
/// none is known, or if they cannot be watched: then they are read when they are due.
pub(super) async fn wait_for_owner(
    api: Apiserver,
    namespace: String,
    known: BTreeMap<String, String>,
) -> String {
    if known.is_empty() {
        return pending().await;
    }
    let sets: Api<StatefulSet> = Api::namespaced(api.client(), &namespace);
    loop {
        let began = Instant::now();
        match changed_in_one_watch(&sets, &known).await {
            Ok(Some(name)) => return name,
            // One watch has a limited time; its end is no error.
            Ok(None) => sleep_until(began + LEAST_BETWEEN).await,
            Err(_) => return pending().await,
        }
    }
}

async fn changed_in_one_watch(
    sets: &Api<StatefulSet>,
    known: &BTreeMap<String, String>,
) -> kube::Result<Option<String>> {
    // From version 0: first all existing sets, from the apiserver's cache.
    let params = WatchParams::default().timeout(WATCH_SECONDS);
    let mut changes = pin!(sets.watch_metadata(&params, "0").await?);
    while let Some(change) = changes.next().await {
        let (WatchEvent::Added(set) | WatchEvent::Modified(set) | WatchEvent::Deleted(set)) =
            change?
        else {
            continue;
        };
        let (name, version) = (set.metadata.name, set.metadata.resource_version);
        let read = name.as_ref().and_then(|name| known.get(name));
        let (Some(name), Some(read), Some(version)) = (&name, read, version) else { continue };
        if is_later(&version, read) {
            return Ok(Some(name.clone()));
        }
    }
    Ok(None)
}
