//! One reading of all config directories, so that one checksum is one generation.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, readlink};
use nix::sys::stat::{FileStat, SFlag, fstat, lstat, stat};
use sha2::{Digest, Sha256};

use super::ConfigSettings;
use super::progress::Progress;
use super::walk::walk;
use stayput_api::ConfigFile;
use stayput_api::checksum::{Checksum, ContentDigest, FileDigest};

/// A file of the config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Index of the file's config directory.
    pub(super) dir: usize,
    /// Path below that directory.
    pub(super) relative: PathBuf,
    /// Listed path and digest.
    pub(super) file: FileDigest,
    /// Digest of the content without `cluster.initial_master_nodes`, if the file has that setting.
    pub(super) formed: Option<ContentDigest>,
    /// True if the engine reloads the file by itself.
    pub(super) live: bool,
    pub(super) access: Permissions,
}

/// Permission bits, owner and group of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Permissions {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// A problem with the mounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// The fault, and what to do.
    pub(super) message: String,
    /// True if the checksum cannot be computed because of the problem.
    pub(super) hides_checksum: bool,
}

/// One reading of all config directories.
#[derive(Debug, Clone, Default)]
pub(super) struct Generation {
    /// Sorted by listed path once [finished](Self::finished).
    pub(super) entries: Vec<Entry>,
    /// Checksum of the files that are not live; `None` without directories, or where a problem hides it.
    pub(super) checksum: Option<Checksum>,
    pub(super) problems: Vec<Problem>,
    pub(super) fingerprint: Fingerprint,
    /// The directories that were read and can change.
    pub(super) directories: Vec<PathBuf>,
    /// True if the limit was reached: there may be directories that are not known.
    pub(super) cut_short: bool,
}

impl Generation {
    /// Sorts the files and computes the checksum.
    pub(super) fn finished(mut self, settings: &ConfigSettings) -> Self {
        self.entries.sort_by(|one, other| one.file.cmp(&other.file));
        for pair in self.entries.windows(2) {
            if pair[0].file.path == pair[1].file.path {
                self.problems.push(Problem {
                    message: format!(
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

    /// Every file as the status lists it.
    pub(super) fn files(&self) -> impl Iterator<Item = ConfigFile> {
        self.entries.iter().map(|Entry { file, live, formed, .. }| ConfigFile {
            path: lossy(&file.path),
            sha256: file.sha256.to_string(),
            live: *live,
            formed_sha256: formed.map(|digest| digest.to_string()),
        })
    }

    /// Messages of the problems, one each.
    pub(super) fn messages(&self) -> Vec<String> {
        self.problems.iter().map(|problem| problem.message.clone()).collect()
    }
}

/// A path for people and for JSON; a name that is not UTF-8 is shown approximately.
pub(super) fn lossy(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// How to open what should be a regular file: a fifo must not block the manager, and a terminal
/// must not become its controlling terminal.
pub(super) const READ: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_NONBLOCK).union(OFlag::O_NOCTTY).union(OFlag::O_CLOEXEC);

/// How to open a directory.
pub(super) const DIRECTORY: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// The kind of file that a stat describes.
pub(super) fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits())
}

/// Why a file has no digest.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    #[error("it is not a regular file")]
    NotRegular,
    /// The file has more bytes than the limit leaves.
    #[error("it is too large")]
    TooLarge,
    #[error("it changed while it was read")]
    Changed,
    #[error(transparent)]
    Failed(#[from] io::Error),
}

impl From<nix::Error> for Unread {
    fn from(error: nix::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// A file that was read.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) sha256: ContentDigest,
    pub(super) stat: FileStat,
}

/// Reads a file to its end, at most `most` bytes, and passes every piece to `sink`.
pub(super) fn read_file(
    fd: OwnedFd,
    most: u64,
    mut sink: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<Content, Unread> {
    let before = fstat(&fd)?;
    if kind(&before) != SFlag::S_IFREG {
        return Err(Unread::NotRegular);
    }
    if u64::try_from(before.st_size).is_ok_and(|size| size > most) {
        return Err(Unread::TooLarge);
    }
    let mut file = File::from(fd);
    let mut hash = Sha256::new();
    let mut left = most;
    // On the heap: a walk reads the files of a deep directory on top of its own frames.
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => &buffer[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        // It may have grown since its size was read.
        left = left.checked_sub(read.len() as u64).ok_or(Unread::TooLarge)?;
        hash.update(read);
        sink(read)?;
    }
    let stat = fstat(&file)?;
    let same = |one: &FileStat, other: &FileStat| {
        (one.st_size, one.st_mtime, one.st_mtime_nsec)
            == (other.st_size, other.st_mtime, other.st_mtime_nsec)
    };
    if !same(&before, &stat) {
        return Err(Unread::Changed);
    }
    Ok(Content { sha256: ContentDigest(hash.finalize().into()), stat })
}

/// Number of attempts to read the directories if a change comes in between. Each takes a fraction
/// of a millisecond for a usual config; the kubelet swaps about once a minute.
const ATTEMPTS: usize = 8;

/// Reads all directories until nothing changed in the meantime.
pub(super) fn read_all(settings: &ConfigSettings, progress: &Progress) -> Generation {
    for _ in 0..ATTEMPTS {
        let walked = walk(settings, progress);
        if !walked.changed && walked.generation.fingerprint.is_current() {
            return walked.generation.finished(settings);
        }
    }
    let mut generation = walk(settings, progress).generation;
    generation.problems.push(Problem {
        message: format!(
            "the config changed each of the {ATTEMPTS} times it was read; it is read again at the \
             next change"
        ),
        hides_checksum: true,
    });
    generation.finished(settings)
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config_watch::ConfigDir;

    #[test] // proves RESTART-128
    fn a_file_without_the_first_masters_has_the_digest_of_the_formed_one() {
        let read = |text: &str| {
            let dir = tempfile::tempdir().expect("a directory");
            fs::write(dir.path().join("elasticsearch.yml"), text).expect("a file");
            fs::write(dir.path().join("jvm.options"), text).expect("a file");
            let settings = ConfigSettings {
                dirs: vec![ConfigDir { name: None, path: dir.path().to_owned() }],
                ..ConfigSettings::default()
            };
            let read = super::read_all(&settings, &Progress::unseen());
            read.files().map(|file| (file.sha256, file.formed_sha256)).collect::<Vec<_>>()
        };
        let formed = read("cluster.name: logs\n");
        let first = read("cluster.name: logs\ncluster.initial_master_nodes: [a]\n");
        assert_eq!(first[0].1.as_ref(), Some(&formed[0].0));
        assert_eq!([&formed[0].1, &formed[1].1, &first[1].1], [&None; 3]);
    }
}
