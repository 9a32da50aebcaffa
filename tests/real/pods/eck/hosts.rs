//! The names of the engines' pods, as DNS would have them, in a file like `/etc/hosts`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use serde_json::Value;

use crate::support::kubernetes::client::Kube;

/// Pods get another address only when they are made anew.
const PAUSE: Duration = Duration::from_millis(500);

/// Keeps the file as the pods are, until it is dropped.
pub(super) struct Hosts {
    is_over: Arc<AtomicBool>,
    task: Option<JoinHandle<()>>,
}

impl Hosts {
    /// The file is there when this returns.
    pub(super) fn write(file: &Path, kubeconfig: &Path) -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let (file, kubeconfig) = (file.to_owned(), kubeconfig.to_owned());
        fs::write(&file, lines(&Value::Null)).expect("a file");
        let theirs = Arc::clone(&is_over);
        let task = spawn(move || follow(&file, &kubeconfig, &theirs));
        Self { is_over, task: Some(task) }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(task) = self.task.take() {
            let _ = task.join();
        }
    }
}

fn follow(file: &PathBuf, kubeconfig: &Path, is_over: &AtomicBool) {
    let (reader, mut written) = (Kube::new(kubeconfig), String::new());
    while !is_over.load(Ordering::Relaxed) {
        // The apiserver may end before this does.
        if let Ok(pods) = reader.read("/api/v1/namespaces/search/pods") {
            let lines = lines(&pods["items"]);
            if lines != written {
                fs::write(file, &lines).expect("a file");
                written = lines;
            }
        }
        sleep(PAUSE);
    }
}

fn lines(pods: &Value) -> String {
    let pods = pods.as_array().into_iter().flatten();
    let names = pods.filter_map(|pod| {
        let set = &pod["metadata"]["labels"]["elasticsearch.k8s.elastic.co/statefulset-name"];
        let (name, set) = (pod["metadata"]["name"].as_str()?, set.as_str()?);
        let address = pod["status"]["podIP"].as_str()?;
        Some(format!("{address} {name}.{set}.search\n"))
    });
    std::iter::once("127.0.0.1 localhost\n".to_owned()).chain(names).collect()
}
