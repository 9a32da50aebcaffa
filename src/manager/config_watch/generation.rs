//! One consistent reading of all config directories: what was read, and whether it still holds.

use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::readlink;
use nix::sys::stat::{FileStat, lstat, stat};

use super::settings::ConfigSettings;
use super::walk::walk;
use stayput_api::checksum::{Checksum, FileDigest};

/// How often a reading that was overtaken by a change is tried again. Each try takes a fraction of
/// a millisecond for a usual config; the kubelet swaps about once a minute.
const ATTEMPTS: usize = 8;

/// A file of the config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Index of its config directory.
    pub(super) dir: usize,
    /// Path below that directory.
    pub(super) relative: PathBuf,
    /// Listed path and digest.
    pub(super) file: FileDigest,
    /// Reloaded by the engine itself.
    pub(super) live: bool,
    /// Permission bits, owner and group.
    pub(super) access: Access,
}

/// Who may do what with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Access {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// A sentence about the mounts, and whether the config can still be told as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) sentence: String,
    pub(super) hides_checksum: bool,
}

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

/// Where a kubelet volume's `..data` pointed. All below it is immutable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// The directory that holds `..data`.
    pub(super) path: PathBuf,
    /// Device and inode of that directory: it may be replaced as a whole.
    pub(super) identity: (u64, u64),
    /// Value of the link.
    pub(super) target: PathBuf,
}

/// What has to be the same for a reading to be one generation, and for it to hold still.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ground {
    /// Kubelet volumes, in the order they were found.
    pub(super) mounts: Vec<Mount>,
    /// Plain files and directories.
    pub(super) stamps: Vec<(PathBuf, Stamp)>,
    /// Config directories that were not there.
    pub(super) absent: Vec<PathBuf>,
}

impl Ground {
    /// Whether nothing has moved since it was read. A few system calls, no content is read.
    pub(super) fn holds(&self) -> bool {
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

    /// The part that concerns these directories and what is below them.
    pub(super) fn below(&self, concerned: impl Fn(&Path) -> bool) -> Self {
        Self {
            mounts: self.mounts.iter().filter(|mount| concerned(&mount.path)).cloned().collect(),
            stamps: self.stamps.iter().filter(|(path, _)| concerned(path)).cloned().collect(),
            absent: self.absent.iter().filter(|path| concerned(path)).cloned().collect(),
        }
    }
}

/// One reading.
#[derive(Debug, Clone, Default)]
pub(super) struct Generation {
    /// Sorted by listed path.
    pub(super) entries: Vec<Entry>,
    /// The checksum; none without directories, or where a problem hides it.
    pub(super) checksum: Option<Checksum>,
    pub(super) problems: Vec<Problem>,
    pub(super) ground: Ground,
    /// The directories that were read and can change.
    pub(super) places: Vec<PathBuf>,
    /// There was too much to read: there may be directories nobody knows of.
    pub(super) cut_short: bool,
}

impl Generation {
    /// Reads all directories until nothing moved meanwhile, so that one checksum is one generation.
    pub(super) fn read(settings: &ConfigSettings) -> Self {
        for _ in 0..ATTEMPTS {
            let walked = walk(settings);
            if !walked.moved && walked.generation.ground.holds() {
                return walked.generation.finished(settings);
            }
        }
        let mut generation = walk(settings).generation;
        generation.problems.push(Problem {
            sentence: format!(
                "the config changed each of the {ATTEMPTS} times it was read; it is read again at \
                 the next change"
            ),
            hides_checksum: true,
        });
        generation.finished(settings)
    }

    fn finished(mut self, settings: &ConfigSettings) -> Self {
        self.entries.sort_by(|one, other| one.file.cmp(&other.file));
        for pair in self.entries.windows(2) {
            if pair[0].file.path == pair[1].file.path {
                self.problems.push(Problem {
                    sentence: format!(
                        "{} is in two config directories: give them names, --config NAME=DIR",
                        lossy(&pair[0].file.path)
                    ),
                    hides_checksum: true,
                });
            }
        }
        let whole = !self.problems.iter().any(|problem| problem.hides_checksum);
        if whole && !settings.dirs.is_empty() {
            let counted = self.entries.iter().filter(|entry| !entry.live);
            self.checksum = Some(Checksum::of_files(counted.map(|entry| &entry.file)));
        }
        self
    }

    /// What is wrong, for a refusal.
    pub(super) fn sentences(&self) -> Vec<String> {
        self.problems.iter().map(|problem| problem.sentence.clone()).collect()
    }
}

/// A path for people and for JSON, where a name that is not UTF-8 cannot be written.
pub(super) fn lossy(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
