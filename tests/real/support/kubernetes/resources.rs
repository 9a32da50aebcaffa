//! Resources of one instance: a directory, ports, control groups.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The prefix before the pid of the test binary: it marks what the tests may remove.
const PREFIX: &str = "stayput-kube.";
const CGROUPS: &str = "/sys/fs/cgroup";

/// A directory for this test. First removes what killed tests have left.
pub(crate) fn directory() -> TempDir {
    sweep();
    let prefix = format!("{PREFIX}{}.", std::process::id());
    let directory = tempfile::Builder::new().prefix(&prefix).tempdir().expect("a temp dir");
    // Engines with other users read files in it.
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(directory.path(), open).expect("permissions");
    directory
}

/// Their processes have ended, and a node's mounts are gone with its namespace: only files and
/// empty control groups can be left.
fn sweep() {
    for left in places() {
        let name = left.file_name().and_then(|name| name.to_str());
        let pid = name.and_then(|name| name.strip_prefix(PREFIX)?.split('.').next()?.parse().ok());
        if pid.is_some_and(|pid: u32| !Path::new("/proc").join(pid.to_string()).exists()) {
            if left.starts_with(CGROUPS) {
                remove_group(&left)
            } else {
                // It may belong to another user.
                drop(fs::remove_dir_all(left))
            }
        }
    }
}

/// The directories and control groups of the test binary `pid`, alive or not.
pub(crate) fn left_by(pid: u32) -> Vec<PathBuf> {
    let prefix = format!("{PREFIX}{pid}.");
    let is_its = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
    };
    places().filter(is_its).collect()
}

/// The parent directory of all our directories.
fn places() -> impl Iterator<Item = PathBuf> {
    let hierarchies = entries(Path::new(CGROUPS)).chain([CGROUPS.into()]);
    entries(&std::env::temp_dir()).chain(hierarchies.flat_map(|hierarchy| entries(&hierarchy)))
}

/// Makes a control group called `name` in every hierarchy; a kubelet makes those of its pods below.
pub(crate) fn make_groups(name: &str) -> std::io::Result<()> {
    entries(Path::new(CGROUPS)).try_for_each(|hierarchy| fs::create_dir(hierarchy.join(name)))
}

/// Removes the control groups called `name`, of every hierarchy.
pub(crate) fn remove_groups(name: &str) {
    for hierarchy in entries(Path::new(CGROUPS)).chain([CGROUPS.into()]) {
        remove_group(&hierarchy.join(name));
    }
}

/// From the leaves up; the kernel refuses to remove one with processes.
fn remove_group(group: &Path) {
    for inner in entries(group) {
        remove_group(&inner);
    }
    let _ = fs::remove_dir(group);
}

/// The subdirectories of a directory, without links.
fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
}
