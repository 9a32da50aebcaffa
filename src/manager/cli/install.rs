//! `install`: copies this program to a path where another container finds it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Error: the program cannot be copied into the directory.
#[derive(Debug, Error)]
#[error("cannot install into {}: {source}{}", dir.display(), hint(source))]
pub(super) struct InstallError {
    dir: PathBuf,
    source: io::Error,
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            "; it must be an existing directory, such as the mount of an emptyDir"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; mount a volume there that this user may write to"
        }
        _ => "",
    }
}

/// Copies this program to `dir/stayput` and returns that path. The file appears complete or not
/// at all: an engine's container may be started while an earlier copy is in use.
pub(super) fn install(dir: &Path) -> Result<PathBuf, InstallError> {
    let target = dir.join("stayput");
    let partial = dir.join(".stayput.partial");
    copy(dir, &partial, &target).map_err(|source| {
        // If it cannot be removed, the next attempt replaces it.
        let _ = fs::remove_file(&partial);
        InstallError { dir: dir.to_owned(), source }
    })?;
    Ok(target)
}

fn copy(dir: &Path, partial: &Path, target: &Path) -> io::Result<()> {
    match fs::remove_file(partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    // Not by the program's path: another file may be there now.
    let mut source = File::open("/proc/self/exe")?;
    let mut copy = OpenOptions::new().write(true).create_new(true).mode(0o755).open(partial)?;
    io::copy(&mut source, &mut copy)?;
    // The umask changed the mode above.
    copy.set_permissions(Permissions::from_mode(0o755))?;
    copy.sync_all()?;
    // A file that is open for writing cannot be executed.
    drop(copy);
    fs::rename(partial, target)?;
    File::open(dir)?.sync_all()
}
