//! While pods are updated: the next edit of a StatefulSet that owns some of them.

use std::collections::BTreeMap;
use std::pin::pin;

use futures_util::StreamExt;
use futures_util::future::pending;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};

use crate::controller::apiserver::Apiserver;

/// Completes with the name of a StatefulSet that differs from the version that was read; never if
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
    // From version 0: first all that there are, as the apiserver has them in memory.
    let Ok(changes) = sets.watch_metadata(&WatchParams::default(), "0").await else {
        return pending().await;
    };
    let mut changes = pin!(changes);
    while let Some(Ok(change)) = changes.next().await {
        let (WatchEvent::Added(set) | WatchEvent::Modified(set) | WatchEvent::Deleted(set)) =
            change
        else {
            continue;
        };
        let (name, version) = (set.metadata.name, set.metadata.resource_version);
        let read = name.as_ref().and_then(|name| known.get(name));
        let (Some(name), Some(read), Some(version)) = (&name, read, version) else { continue };
        if is_later(&version, read) {
            return name.clone();
        }
    }
    pending().await
}

/// Versions of one kind of object grow; the memory of an apiserver may be behind what was read.
fn is_later(version: &str, read: &str) -> bool {
    match (version.parse::<u64>(), read.parse::<u64>()) {
        (Ok(version), Ok(read)) => version > read,
        _ => version != read,
    }
}
