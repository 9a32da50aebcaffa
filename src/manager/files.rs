//! Small files that only their owner may read, replaced as a whole; and the deletion of directories,
//! through descriptors, so that nothing outside is reached.

use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::NixPath;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// Writes a file and puts it in the place of the one that is there: after a crash there is the old
/// one or the new one, never a mixture. `prepare` is called when the new one is on the disk, and not
/// in its place yet. Blocks until the disk has it.
///
/// # Errors
/// The system's error; the old file is in its place then, unless only its directory could not be synced.
pub(crate) fn replace_file(
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
    drop(file);
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

/// Deepest nesting that is deleted: more would cost a descriptor and stack for each level.
pub(crate) const MAX_DEPTH: usize = 64;

/// Deletes the content of the directory. Continues after a failure and returns the first one.
///
/// Symbolic links are removed and not followed, and other file systems mounted inside are left alone,
/// even if somebody moves files at the same time.
pub(crate) fn empty_directory(directory: BorrowedFd<'_>) -> Result<(), Errno> {
    empty_level(directory, fstat(directory)?.st_dev, 0)
}

/// Deletes the file, the link or the directory with its content. Nothing there is no error.
pub(crate) fn remove_tree(path: &Path) -> Result<(), Errno> {
    let deleted = fstatat(AT_FDCWD, path, AtFlags::AT_SYMLINK_NOFOLLOW)
        .and_then(|found| delete(AT_FDCWD, path, found.st_dev, 0));
    match deleted {
        Err(Errno::ENOENT) => Ok(()),
        deleted => deleted,
    }
}

fn empty_level(directory: BorrowedFd<'_>, device: u64, depth: usize) -> Result<(), Errno> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut listing = Dir::openat(directory, ".", flags, Mode::empty())?;
    let mut outcome = Ok(());
    for entry in listing.iter() {
        let deleted = match entry {
            Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => Ok(()),
            Ok(entry) => delete::<CStr>(directory, entry.file_name(), device, depth),
            Err(errno) => Err(errno),
        };
        outcome = outcome.and(deleted);
    }
    outcome
}

fn delete<P: NixPath + ?Sized>(
    parent: BorrowedFd<'_>,
    name: &P,
    device: u64,
    depth: usize,
) -> Result<(), Errno> {
    let found = fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    if found.st_mode & SFlag::S_IFMT.bits() != SFlag::S_IFDIR.bits() {
        return unlinkat(parent, name, UnlinkatFlags::NoRemoveDir);
    }
    if depth == MAX_DEPTH {
        return Err(Errno::ENAMETOOLONG);
    }
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let directory = openat(parent, name, flags, Mode::empty())?;
    // The opened file is checked: its name may refer to another file by now.
    if fstat(&directory)?.st_dev != device {
        return Err(Errno::EXDEV);
    }
    let emptied = empty_level(directory.as_fd(), device, depth + 1);
    emptied.and(unlinkat(parent, name, UnlinkatFlags::RemoveDir))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends with a panic")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::worker::on_a_quarter_of_the_stack;

    #[test] // proves CONFIG-6
    fn the_deepest_nesting_that_is_deleted_needs_a_quarter_of_the_stack() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("root");
        fs::create_dir_all(root.join("d/".repeat(MAX_DEPTH - 1))).unwrap();
        on_a_quarter_of_the_stack(|| remove_tree(&root)).unwrap();
        assert!(!root.exists());
        remove_tree(&root).unwrap();
    }

    #[test]
    fn deeper_nesting_is_left_and_costs_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("root");
        fs::create_dir_all(root.join("d/".repeat(MAX_DEPTH + 40))).unwrap();
        fs::write(root.join("file"), "").unwrap();
        let removed = on_a_quarter_of_the_stack(|| remove_tree(&root));
        assert_eq!(removed, Err(Errno::ENAMETOOLONG));
        assert!(root.join("d").exists() && !root.join("file").exists());
    }

    #[test]
    fn a_link_is_removed_and_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let (link, other) = (parent.path().join("link"), parent.path().join("other"));
        fs::create_dir(&other).unwrap();
        fs::write(other.join("file"), "").unwrap();
        symlink(&other, &link).unwrap();
        remove_tree(&link).unwrap();
        assert!(!link.is_symlink() && other.join("file").exists());
    }
}
