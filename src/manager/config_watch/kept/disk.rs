//! Files and directories that only their owner may read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use nix::fcntl::open;
use nix::sys::stat::{Mode, fstat};
use nix::sys::statvfs::statvfs;

use super::super::content::{self, READ};
use crate::delete_tree;
use stayput_api::checksum::ContentDigest;

/// Copies a file if it exists and has the digest. The error is one of the copy.
pub(super) fn copied(from: &Path, to: &Path, sha256: ContentDigest) -> io::Result<bool> {
    let Ok(from) = open(from, READ, Mode::empty()) else { return Ok(false) };
    remove(to)?;
    let size = fstat(&from).map_or(0, |found| u64::try_from(found.st_size).unwrap_or(0));
    leave_room(to.parent().unwrap_or(to), size)?;
    let mut to = create(to)?;
    let mut unwritten = None;
    let read = content::read(from, u64::MAX, |piece| {
        to.write_all(piece).inspect_err(|error| unwritten = error.raw_os_error())
    });
    if let Some(error) = unwritten {
        return Err(io::Error::from_raw_os_error(error));
    }
    to.sync_all()?;
    Ok(read.is_ok_and(|content| content.sha256 == sha256))
}

/// Writes a new file, durably once its directory is synced.
pub(super) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Makes `link` point to `name` beside it, in one step, by way of the path `new`.
pub(super) fn point(link: &Path, name: &Path, new: &Path) -> io::Result<()> {
    remove(new)?;
    symlink(name, new)?;
    fs::rename(new, link)
}

pub(super) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Makes a directory that only its owner may enter. A link there, or a directory of another user,
/// is replaced: the link's target and that user's files are not ours to change.
pub(super) fn make_directory(path: &Path) -> io::Result<()> {
    let make = || DirBuilder::new().mode(0o700).create(path);
    match make() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match open_ours(path) {
            Some(directory) => directory.set_permissions(fs::Permissions::from_mode(0o700)),
            None => {
                remove(path)?;
                make()
            }
        },
        made => made,
    }
}

/// Opens the directory itself, if it belongs to the manager's user.
fn open_ours(path: &Path) -> Option<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let directory = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let owner = directory.metadata().ok()?.uid();
    (owner == nix::unistd::geteuid().as_raw()).then_some(directory)
}

/// Removes whatever is there, if anything is.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    Ok(delete_tree::remove(path)?)
}

/// Bytes that kept configs leave free on their file system: journal and certificate are written
/// there, too, and without the journal no stop is accepted.
const RESERVE: u64 = 128 * 1024;

/// There is no room for a file of this size beside the reserve.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} KiB are free there, a file of {} KiB is to be kept, and {} KiB are left for the journal; make \
     the state directory larger: five times the config and 1 MiB",
    free / 1024, size.div_ceil(1024), RESERVE / 1024
)]
struct NoRoom {
    free: u64,
    size: u64,
}

/// Fails if a file of this size in this directory would take of the reserve.
fn leave_room(directory: &Path, size: u64) -> io::Result<()> {
    let volume = statvfs(directory)?;
    let free = volume.blocks_available().saturating_mul(volume.fragment_size());
    // Some file systems do not say what they have.
    if volume.blocks() > 0 && free < size.saturating_add(RESERVE) {
        return Err(io::Error::new(io::ErrorKind::StorageFull, NoRoom { free, size }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_its_place_is_replaced_and_what_it_points_to_stays() {
        let directory = tempfile::tempdir().unwrap();
        let other = directory.path().join("other");
        DirBuilder::new().mode(0o755).create(&other).unwrap();
        fs::write(other.join("file"), "").unwrap();
        let path = directory.path().join("configs");
        symlink(&other, &path).unwrap();
        make_directory(&path).unwrap();
        make_directory(&path).unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_dir());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        assert_eq!(fs::metadata(&other).unwrap().permissions().mode() & 0o777, 0o755);
        assert!(other.join("file").exists());
    }
}
