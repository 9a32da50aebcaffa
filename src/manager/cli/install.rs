//! `install`: this very program, copied to where another container finds it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Copies this program to `dir/stayput` and returns that path. The file appears whole or not at
/// all: an engine's container may be started while an earlier copy is in use.
pub(super) fn install(dir: &Path) -> Result<PathBuf, String> {
    let target = dir.join("stayput");
    let partial = dir.join(".stayput.partial");
    copy(dir, &partial, &target).map_err(|error| {
        // What cannot be removed is replaced by the next attempt.
        let _ = fs::remove_file(&partial);
        let hint = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                "; it must be an existing directory, such as the mount of an emptyDir"
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "; mount a volume there that this user may write to"
            }
            _ => "",
        };
        format!("cannot install into {}: {error}{hint}", dir.display())
    })?;
    Ok(target)
}

fn copy(dir: &Path, partial: &Path, target: &Path) -> io::Result<()> {
    match fs::remove_file(partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    // Not by the program's path: that may name another file by now.
    let mut source = File::open("/proc/self/exe")?;
    let mut copy = OpenOptions::new().write(true).create_new(true).mode(0o755).open(partial)?;
    io::copy(&mut source, &mut copy)?;
    // The mode above was subject to the umask.
    copy.set_permissions(Permissions::from_mode(0o755))?;
    copy.sync_all()?;
    // Closed before it can be executed: a file open for writing is refused as busy.
    drop(copy);
    fs::rename(partial, target)?;
    File::open(dir)?.sync_all()
}
