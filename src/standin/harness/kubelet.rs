//! A kubelet updates the volumes of a changed Secret after a long time, or at once if the pod itself
//! changes. Here it happens only in the second case.

use std::collections::BTreeMap;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};

use super::atomic_writer::Payload;

/// Calls `mount` with the name of a pod and the content of its Secret `POD-config` each time the
/// pod's annotation `key` has changed. Runs until it is dropped.
pub async fn run(client: Client, namespace: &str, key: &str, mut mount: impl FnMut(&str, Payload)) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let secrets: Api<Secret> = Api::namespaced(client, namespace);
    let events = watcher::watcher(pods, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events.applied_objects());
    let mut values: BTreeMap<String, Option<String>> = BTreeMap::new();
    while let Some(event) = events.next().await {
        let Ok(pod) = event else { continue };
        let Some(name) = pod.metadata.name else { continue };
        let value = pod.metadata.annotations.unwrap_or_default().remove(key);
        let before = values.insert(name.clone(), value.clone());
        if before.is_none_or(|before| before == value) {
            continue;
        }
        let Ok(secret) = secrets.get(&format!("{name}-config")).await else { continue };
        let data = secret.data.unwrap_or_default().into_iter();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        mount(&name, data.map(|(file, content)| (file, text(content.0))).collect());
    }
}
