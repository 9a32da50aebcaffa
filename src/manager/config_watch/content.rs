//! Opens a path that may be anything, and hashes its content without blocking and within a limit.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use nix::fcntl::OFlag;
use nix::sys::stat::{FileStat, SFlag, fstat};
use sha2::{Digest, Sha256};

use stayput_api::checksum::ContentDigest;

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
pub(super) fn read(
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
