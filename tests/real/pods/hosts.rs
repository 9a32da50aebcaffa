//! Names of the engines' pods and Services, as DNS would have them, in a file like `/etc/hosts`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use serde_json::Value;

use crate::support::kubernetes::client::Kube;

/// The name of a pod with an address, if it has one.
type Named = fn(&Value) -> Option<String>;

/// Between two looks at the pods.
const PAUSE: Duration = Duration::from_millis(500);

/// Keeps the file as the pods are, until it is dropped.
pub(super) struct Hosts {
    is_over: Arc<AtomicBool>,
    task: Option<JoinHandle<()>>,
}

impl Hosts {
    /// The file is there when this returns.
    pub(super) fn write(file: &Path, kubeconfig: &Path, name: Named) -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let (file, kubeconfig) = (file.to_owned(), kubeconfig.to_owned());
        fs::write(&file, lines(&Value::Null, name)).expect("a file");
        let theirs = Arc::clone(&is_over);
        let task = spawn(move || follow(&file, &kubeconfig, name, &theirs));
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

fn follow(file: &PathBuf, kubeconfig: &Path, name: Named, is_over: &AtomicBool) {
    let (reader, mut written) = (Kube::new(kubeconfig), String::new());
    while !is_over.load(Ordering::Relaxed) {
        // The apiserver may end before this does.
        if let Ok(pods) = reader.read("/api/v1/namespaces/search/pods") {
            let lines = lines(&pods["items"], name);
            if lines != written {
                fs::write(file, &lines).expect("a file");
                written = lines;
            }
        }
        sleep(PAUSE);
    }
}

fn lines(pods: &Value, name: Named) -> String {
    let pods = pods.as_array().into_iter().flatten();
    let lines = pods.filter_map(|pod| {
        let address = pod["status"]["podIP"].as_str()?;
        Some(format!("{address} {}\n", name(pod)?))
    });
    std::iter::once("127.0.0.1 localhost\n".to_owned()).chain(lines).collect()
}
