//! Fingerprint of the config directories, which tells whether they have changed since they were read.

use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::readlink;
use nix::sys::stat::{FileStat, lstat, stat};

/// Identity and version of a file or directory that can change in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(stat: &FileStat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

/// A kubelet volume, and where its `..data` pointed. All below that is immutable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// The directory that holds `..data`.
    pub(super) path: PathBuf,
    /// Device and inode of that directory: it may be replaced as a whole.
    pub(super) identity: (u64, u64),
    /// Value of the `..data` link.
    pub(super) target: PathBuf,
}

/// Identity of everything that was read, for a later comparison: if nothing differs, the reading is
/// one generation and still the current one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// Kubelet volumes, in the order they were found.
    pub(super) mounts: Vec<Mount>,
    /// Plain files and directories.
    pub(super) stamps: Vec<(PathBuf, Stamp)>,
    /// Config directories that did not exist.
    pub(super) absent: Vec<PathBuf>,
}

impl Fingerprint {
    /// True if nothing has changed since the reading. Takes a few system calls and reads no content.
    pub(super) fn is_current(&self) -> bool {
        self.mounts.iter().all(|mount| {
            let identity = stat(&mount.path).map(|stat| (stat.st_dev, stat.st_ino));
            let target = readlink(&mount.path.join("..data"));
            identity == Ok(mount.identity) && target.is_ok_and(|target| target == *mount.target)
        }) && self
            .stamps
            .iter()
            .all(|(path, stamp)| stat(path).is_ok_and(|now| Stamp::of(&now) == *stamp))
            && self.absent.iter().all(|path| lstat(path) == Err(Errno::ENOENT))
    }

    /// The part about these directories and everything below them.
    pub(super) fn below(&self, concerned: impl Fn(&Path) -> bool) -> Self {
        Self {
            mounts: self.mounts.iter().filter(|mount| concerned(&mount.path)).cloned().collect(),
            stamps: self.stamps.iter().filter(|(path, _)| concerned(path)).cloned().collect(),
            absent: self.absent.iter().filter(|path| concerned(path)).cloned().collect(),
        }
    }
}
