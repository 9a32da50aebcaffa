//! The kubelet's AtomicWriter (pkg/volume/util/atomic_writer.go), replayed with the same system
//! calls in the same order: what a mounted Secret, ConfigMap or projected volume looks like from
//! inside, and every event it sets off.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as the test itself may")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A volume's payload: content by path.
pub(crate) type Payload = BTreeMap<String, String>;

/// A payload of these files.
pub(crate) fn payload<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Payload {
    files.into_iter().map(|(path, content)| (path.to_owned(), content.to_owned())).collect()
}

/// The kubelet's writer of one volume.
#[derive(Debug)]
pub(crate) struct AtomicWriter {
    root: PathBuf,
    written: u64,
}

impl AtomicWriter {
    /// A writer for a directory that exists.
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), written: 0 }
    }

    /// Makes `payload` the volume's content.
    pub(crate) fn write(&mut self, payload: &Payload) {
        let data = self.root.join("..data");
        let old = fs::read_link(&data).ok();
        // mkdtemp with the time as prefix; the kubelet's suffix is random, a number is as unique.
        self.written += 1;
        let name = format!("..2026_11_21_09_00_00.{:09}", self.written);
        let new = self.root.join(&name);
        fs::create_dir(&new).unwrap();
        fs::set_permissions(&new, Permissions::from_mode(0o755)).unwrap();
        for (path, content) in payload {
            let path = new.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        }
        let tops: BTreeSet<&str> =
            payload.keys().map(|path| path.split('/').next().unwrap()).collect();
        for top in &tops {
            let visible = self.root.join(top);
            if visible.symlink_metadata().is_err() {
                symlink(Path::new("..data").join(top), visible).unwrap();
            }
        }
        let temporary = self.root.join("..data_tmp");
        symlink(&name, &temporary).unwrap();
        fs::rename(&temporary, &data).unwrap();
        for entry in fs::read_dir(&self.root).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if !name.starts_with("..") && !tops.contains(name.as_str()) {
                fs::remove_file(self.root.join(name)).unwrap();
            }
        }
        if let Some(old) = old {
            fs::remove_dir_all(self.root.join(old)).unwrap();
        }
    }
}
