//! Files and directories that only their owner may read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use nix::fcntl::open;
use nix::sys::stat::Mode;

use super::super::content::{self, READ};
use stayput_api::checksum::ContentDigest;

/// Copies a file if it exists and has the digest. The error is one of the copy.
pub(super) fn copied(from: &Path, to: &Path, sha256: ContentDigest) -> io::Result<bool> {
    let Ok(from) = open(from, READ, Mode::empty()) else { return Ok(false) };
    remove(to)?;
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

/// A link there is replaced: the engine's user may write where the directory is, and a manager that
/// runs as root must not change what such a link points to.
pub(super) fn make_directory(path: &Path) -> io::Result<()> {
    let make = || DirBuilder::new().mode(0o700).create(path);
    match make() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if fs::symlink_metadata(path)?.is_dir() {
                return fs::set_permissions(path, fs::Permissions::from_mode(0o700));
            }
            fs::remove_file(path)?;
            make()
        }
        made => made,
    }
}

/// Removes whatever is there, if anything is.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
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
