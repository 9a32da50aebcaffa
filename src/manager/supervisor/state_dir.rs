//! The state directory, and who may write there.
//!
//! As root the manager may have an engine of another user, and an `emptyDir` is open to all users. Whoever
//! may rename what is in it could put a link in the place of a directory of ours, and root would follow
//! it. So nobody else may write there, before there is an engine.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use nix::unistd::geteuid;

/// Write permission of the group and of others.
const OPEN: u32 = 0o022;
/// Owner shown for files of a user without a uid in this user namespace.
const NOBODY: u32 = 65534;
/// In a directory with this bit, only its owner may rename what belongs to others.
const STICKY: u32 = 0o1000;

/// As root, takes the right to write to the directory from all other users. A manager that is not
/// root runs as the engine's user, which may write to the volume anyway.
///
/// # Errors
/// The directory, or one above it, belongs to another user or is open to others.
pub(super) fn close_to_others(path: &Path) -> Result<(), String> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let unusable = |error| unusable(path, &error);
    let real = fs::canonicalize(path).map_err(unusable)?;
    let directory = open_of_root(path, &real)?;
    let mode = directory.metadata().map_err(unusable)?.mode();
    if is_open(mode) {
        let closed = Permissions::from_mode(mode & 0o7777 & !OPEN);
        match directory.set_permissions(closed) {
            // Nobody can write there now.
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {}
            closed => closed.map_err(unusable)?,
        }
    }
    for above in real.ancestors().skip(1) {
        let mode = open_of_root(path, above)?.metadata().map_err(unusable)?.mode();
        if is_open(mode) {
            return Err(format!(
                "--state-dir {}: other users may write to {}, and could replace files of this manager, \
                 which runs as root: mount an emptyDir there, or run the manager as the engine's user",
                path.display(),
                above.display()
            ));
        }
    }
    Ok(())
}

/// The message for the system's error from an attempt to use the directory.
pub(super) fn unusable(path: &Path, error: &io::Error) -> String {
    format!(
        "--state-dir {} cannot be used ({error}): mount an emptyDir there, or make it",
        path.display()
    )
}

fn is_open(mode: u32) -> bool {
    mode & OPEN != 0 && mode & STICKY == 0
}

/// Opens a directory that belongs to root.
fn open_of_root(path: &Path, part: &Path) -> Result<File, String> {
    let unusable = |error| unusable(path, &error);
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let directory = OpenOptions::new().read(true).custom_flags(flags).open(part);
    let directory = directory.map_err(unusable)?;
    match directory.metadata().map_err(unusable)?.uid() {
        0 => Ok(directory),
        NOBODY if is_user_namespace() => Ok(directory),
        owner => Err(format!(
            "--state-dir {}: {} belongs to uid {owner}, who could replace files of this manager, \
             which runs as root: mount an emptyDir there, or run the manager as the engine's user",
            path.display(),
            part.display()
        )),
    }
}

/// True in a user namespace, where uids are those of a part of the machine: files of nobody then
/// belong to a user that no process here can be.
fn is_user_namespace() -> bool {
    const WHOLE: [&str; 3] = ["0", "0", "4294967295"];
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    !map.is_empty() && !map.split_whitespace().eq(WHOLE)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends with a panic")]
mod tests {
    use std::os::unix::fs::chown;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn with_mode(path: &Path, mode: u32) {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn as_root_it_is_closed_to_others_and_nothing_else_of_it_changes() {
        let parent = tempfile::tempdir().unwrap();
        for (name, before, root) in
            [("a", 0o777, 0o755), ("b", 0o2777, 0o2755), ("c", 0o700, 0o700), ("d", 0o1777, 0o1777)]
        {
            let path = parent.path().join(name);
            with_mode(&path, before);
            close_to_others(&path).unwrap();
            assert_eq!(mode(&path), if geteuid().is_root() { root } else { before }, "{name}");
        }
    }

    #[test] // proves ACCESS-2
    fn one_that_another_user_could_replace_is_refused() {
        if !geteuid().is_root() {
            return;
        }
        let parent = tempfile::tempdir().unwrap();
        let (theirs, open) = (parent.path().join("theirs"), parent.path().join("open"));
        with_mode(&theirs, 0o755);
        chown(&theirs, Some(1000), None).unwrap();
        let error = close_to_others(&theirs).unwrap_err().to_string();
        assert!(error.contains("belongs to uid 1000"), "{error}");
        with_mode(&theirs.join("inside"), 0o755);
        let error = close_to_others(&theirs.join("inside")).unwrap_err().to_string();
        assert!(error.contains("theirs belongs to uid 1000"), "{error}");
        with_mode(&open, 0o777);
        with_mode(&open.join("inside"), 0o755);
        let error = close_to_others(&open.join("inside")).unwrap_err().to_string();
        assert!(error.contains("other users may write to"), "{error}");
    }
}
