//! Small files that only their owner may read, replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Writes a file and puts it in the place of the one that is there: after a crash there is the old
/// one or the new one, never a mixture. `prepare` is called when the new one is on the disk, and not
/// in its place yet. Blocks until the disk has it.
///
/// # Errors
/// The system's error; the old file is in its place then, unless only its directory could not be synced.
pub(crate) fn replace(
    path: &Path,
    content: &[u8],
    prepare: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    // An existing file would keep its mode.
    remove(new)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
    file.write_all(content)?;
    file.sync_all()?;
    prepare()?;
    fs::rename(new, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Removes the file, if there is one.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
