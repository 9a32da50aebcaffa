//! The volumes of the pods, and the kubelet that writes them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use stayput_restart::annotation;
use stayput_standin::harness;
use stayput_standin::harness::kubelet::{AtomicWriter, Payload};

use crate::error::{Context, Result};

/// The volume of each pod.
#[derive(Clone, Default)]
pub(super) struct Volumes {
    by_pod: Arc<Mutex<BTreeMap<String, AtomicWriter>>>,
}

impl Volumes {
    /// Makes these files the content of the pod's volume.
    pub(super) fn mount(&self, directory: &Path, pod: &str, files: &Payload) -> Result<()> {
        let mut volumes = self.by_pod.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || AtomicWriter::new(&directory.join(pod).join("mount"));
        let volume = volumes.entry(pod.to_owned()).or_insert_with(new);
        volume.try_write(files).context(format!("the volume of {pod} cannot be written"))
    }
}

/// Mounts the Secret of each pod whose annotation changes, until it is dropped.
pub(super) async fn run(client: Client, namespace: &str, directory: &Path, volumes: Volumes) {
    let mount = |pod: &str, files| {
        if let Err(error) = volumes.mount(directory, pod, &files) {
            eprintln!("{error}");
        }
    };
    harness::kubelet::run(client, namespace, annotation::NUDGE, mount).await;
}
