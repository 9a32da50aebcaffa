//! What a kubelet does with mounted Secrets, ConfigMaps and projected volumes. Its AtomicWriter
//! (pkg/volume/util/atomic_writer.go), with the same system calls in the same order, so that a volume looks the
//! same from inside and causes the same events. And when it writes: after a long time, or at once if the pod
//! itself changes; here only in the second case.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};

/// A volume's payload: content by path.
pub type Payload = BTreeMap<String, String>;

/// A payload with these files.
pub fn payload<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Payload {
    files.into_iter().map(|(path, content)| (path.to_owned(), content.to_owned())).collect()
}

/// The kubelet's writer of one volume.
#[derive(Debug)]
pub struct AtomicWriter {
    root: PathBuf,
    written: u64,
}

impl AtomicWriter {
    /// A writer for a directory that exists.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), written: 0 }
    }

    /// Makes `payload` the volume's content; panics if it cannot.
    pub fn write(&mut self, payload: &Payload) {
        self.try_write(payload).expect("the volume can be written");
    }

    /// Makes `payload` the volume's content.
    pub fn try_write(&mut self, payload: &Payload) -> io::Result<()> {
        let data = self.root.join("..data");
        let old = fs::read_link(&data).ok();
        // Like mkdtemp with the time as prefix; the kubelet's suffix is random, a number is as
        // unique.
        self.written += 1;
        let name = format!("..2026_11_21_09_00_00.{:09}", self.written);
        let new = self.root.join(&name);
        fs::create_dir(&new)?;
        fs::set_permissions(&new, Permissions::from_mode(0o755))?;
        for (path, content) in payload {
            let path = new.join(path);
            fs::create_dir_all(path.parent().expect("it is below the volume"))?;
            fs::write(&path, content)?;
            fs::set_permissions(&path, Permissions::from_mode(0o644))?;
        }
        let tops: BTreeSet<&OsStr> =
            payload.keys().filter_map(|path| Path::new(path).iter().next()).collect();
        for top in &tops {
            let visible = self.root.join(top);
            if visible.symlink_metadata().is_err() {
                symlink(Path::new("..data").join(top), visible)?;
            }
        }
        let temporary = self.root.join("..data_tmp");
        symlink(&name, &temporary)?;
        fs::rename(&temporary, &data)?;
        for entry in fs::read_dir(&self.root)? {
            let name = entry?.file_name();
            if !name.as_bytes().starts_with(b"..") && !tops.contains(name.as_os_str()) {
                fs::remove_file(self.root.join(name))?;
            }
        }
        if let Some(old) = old {
            fs::remove_dir_all(self.root.join(old))?;
        }
        Ok(())
    }
}

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
