//! What a kubelet does for pods whose Secrets change: nothing for a long time, unless the pod itself
//! changes; then it looks at once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use stayput_restart::annotation;

use super::engine::Files;
use crate::volume::Volume;

/// The volume of each pod.
#[derive(Clone, Default)]
pub(super) struct Volumes {
    by_pod: Arc<Mutex<BTreeMap<String, Volume>>>,
}

impl Volumes {
    /// Brings these files to the pod.
    pub(super) fn mount(&self, directory: &Path, pod: &str, files: &Files) -> Result<(), String> {
        let mut volumes = self.by_pod.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Volume::new(directory.join(pod).join("mount"));
        let volume = volumes.entry(pod.to_owned()).or_insert_with(new);
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, content)| (name.as_str(), content.as_str())).collect();
        let swapped = volume.swap(&files);
        swapped.map(drop).map_err(|error| format!("the volume of {pod} cannot be written: {error}"))
    }
}

/// Follows the nudges until it is dropped.
pub(super) async fn run(client: Client, namespace: &str, directory: &Path, volumes: Volumes) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let secrets: Api<Secret> = Api::namespaced(client, namespace);
    let events = watcher::watcher(pods, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events.applied_objects());
    let mut nudges: BTreeMap<String, Option<String>> = BTreeMap::new();
    while let Some(event) = events.next().await {
        let Ok(pod) = event else { continue };
        let Some(name) = pod.metadata.name else { continue };
        let annotations = pod.metadata.annotations.unwrap_or_default();
        let nudge = annotations.get(annotation::NUDGE).cloned();
        let before = nudges.insert(name.clone(), nudge.clone());
        if before.is_none_or(|before| before == nudge) {
            continue;
        }
        let Ok(secret) = secrets.get(&format!("{name}-config")).await else { continue };
        let files: Files = secret
            .data
            .unwrap_or_default()
            .into_iter()
            .map(|(file, content)| (file, String::from_utf8_lossy(&content.0).into_owned()))
            .collect();
        if let Err(sentence) = volumes.mount(directory, &name, &files) {
            eprintln!("{sentence}");
        }
    }
}
