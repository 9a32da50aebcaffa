//! The target directory: every operation goes down from its descriptor, following no link.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, renameat};
use nix::sys::stat::{Mode, fchmod, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, fsync, symlinkat, unlinkat};

use super::{Error, remedy};
use crate::config_watch::generation::{self, DIRECTORY, Permissions, READ, Unread};
use stayput_api::checksum::ContentDigest;

/// Directory in the target where copies are made before they are put in place.
pub(super) const FILLED: &str = ".stayput-staging";
/// Name, in the staging directory, of a file without a number.
const OTHER: &str = "other";
/// A directory on the way to a file; needs no read permission.
const STEP: OFlag =
    OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);
const CREATE: OFlag = OFlag::O_WRONLY
    .union(OFlag::O_CREAT)
    .union(OFlag::O_EXCL)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// An open target directory.
#[derive(Debug)]
pub(super) struct Target {
    path: PathBuf,
    fd: OwnedFd,
}

impl Target {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        match open(path, DIRECTORY, Mode::empty()) {
            Ok(fd) => Ok(Self { path: path.to_owned(), fd }),
            Err(Errno::ENOENT) => Err(error(
                path,
                "it does not exist: mount a writable volume there, such as an emptyDir",
            )),
            Err(errno) => Err(error(path, &remedy(errno))),
        }
    }

    /// An error about this target.
    pub(super) fn error(&self, fault: &str) -> Error {
        error(&self.path, fault)
    }

    /// An error of the system, with what to do. `what` could not be done.
    fn failed(&self, what: &str, source: Errno) -> Error {
        self.error(&format!("{what}: {}", remedy(source)))
    }

    /// Makes the directory for copies, empty.
    pub(super) fn clear(&self) -> Result<(), Error> {
        self.finish()?;
        mkdirat(&self.fd, FILLED, Mode::S_IRWXU)
            .map_err(|error| self.failed(&format!("cannot make {FILLED}"), error))
    }

    /// Removes the directory for copies, with what an interrupted staging left in it.
    pub(super) fn finish(&self) -> Result<(), Error> {
        let failed = |error| self.failed(&format!("cannot remove {FILLED}"), error);
        let filled = match self.filled() {
            Ok(filled) => filled,
            Err(Errno::ENOENT) => return Ok(()),
            // It is a file or a link of that name, so it is not ours.
            Err(Errno::ENOTDIR | Errno::ELOOP) => {
                return unlinkat(&self.fd, FILLED, UnlinkatFlags::NoRemoveDir).map_err(failed);
            }
            Err(error) => return Err(failed(error)),
        };
        let mut dir = Dir::openat(&filled, c".", DIRECTORY, Mode::empty()).map_err(failed)?;
        for entry in dir.iter() {
            let entry = entry.map_err(failed)?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                unlinkat(&filled, entry.file_name(), UnlinkatFlags::NoRemoveDir).map_err(failed)?;
            }
        }
        unlinkat(&self.fd, FILLED, UnlinkatFlags::RemoveDir).map_err(failed)
    }

    fn filled(&self) -> nix::Result<OwnedFd> {
        openat(&self.fd, FILLED, DIRECTORY | OFlag::O_NOFOLLOW, Mode::empty())
    }

    /// Copies a source to number `index`. The inner error is about the source.
    pub(super) fn fill(
        &self,
        index: usize,
        source: &Path,
        access: Permissions,
    ) -> Result<Result<ContentDigest, Unread>, Error> {
        let name = index.to_string();
        let failed = |error| self.failed(&format!("cannot copy {}", source.display()), error);
        let from = match open(source, READ, Mode::empty()) {
            Ok(from) => from,
            Err(error) => return Ok(Err(error.into())),
        };
        let to = self.filled().and_then(|filled| {
            openat(&filled, name.as_str(), CREATE, Mode::S_IRUSR | Mode::S_IWUSR)
        });
        let mut to = File::from(to.map_err(failed)?);
        // Only here it is known that the error is about the target.
        let mut unwritten = None;
        // A source that is too large has another content, which was refused at the verification.
        let read = generation::read_file(from, u64::MAX, |piece| {
            to.write_all(piece).inspect_err(|error| unwritten = error.raw_os_error())
        });
        if let Some(error) = unwritten {
            return Err(failed(Errno::from_raw(error)));
        }
        give(&to, access).map_err(failed)?;
        Ok(read.map(|content| content.sha256))
    }

    /// Renames number `index` to its path, making directories on the way.
    pub(super) fn place(&self, index: usize, path: &Path) -> Result<(), Error> {
        self.rename(&index.to_string(), path)
    }

    /// Puts a link at the path.
    pub(super) fn link(&self, to: &Path, path: &Path) -> Result<(), Error> {
        self.filled()
            .and_then(|filled| symlinkat(to, &filled, OTHER))
            .map_err(|error| self.failed(&format!("cannot link {}", path.display()), error))?;
        self.rename(OTHER, path)
    }

    /// Replaces a file of ours directly in the target, durably.
    pub(super) fn replace(&self, name: &str, text: &[u8]) -> Result<(), Error> {
        let write = || -> io::Result<()> {
            let filled = self.filled()?;
            let fd = openat(&filled, OTHER, CREATE, Mode::S_IRUSR | Mode::S_IWUSR)?;
            let mut file = File::from(fd);
            file.write_all(text)?;
            file.sync_all()
        };
        write().map_err(|source| self.error(&format!("cannot write {name}: {source}")))?;
        self.rename(OTHER, Path::new(name))?;
        fsync(self.fd.as_fd()).map_err(|error| self.failed(&format!("cannot write {name}"), error))
    }

    /// Reads a file of ours directly in the target, if it exists.
    pub(super) fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, Error> {
        let fd = match openat(&self.fd, name, READ | OFlag::O_NOFOLLOW, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::ENOENT) => return Ok(None),
            Err(error) => return Err(self.failed(&format!("cannot read {name}"), error)),
        };
        let mut text = Vec::new();
        match generation::read_file(fd, most, |piece| text.write_all(piece)) {
            Ok(_) => Ok(Some(text)),
            Err(_) => {
                Err(self.error(&format!("{name} there is not a file stayput wrote: remove it")))
            }
        }
    }

    /// Removes a file directly in the target that an engine has not written to its end.
    pub(super) fn remove_unfinished(&self, name: &str) -> Result<(), Error> {
        match unlinkat(&self.fd, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) => {
                let target = self.path.display();
                tracing::warn!(
                    "removed {name} in {target}: an engine that was ended while it started has left it"
                );
                Ok(())
            }
            Err(Errno::ENOENT) => Ok(()),
            Err(error) => Err(self.failed(&format!("cannot remove {name}"), error)),
        }
    }

    /// Removes a file that was ours, and the directories that are empty without it.
    pub(super) fn remove(&self, path: &Path) -> Result<(), Error> {
        let failed = |error| self.failed(&format!("cannot remove {}", path.display()), error);
        let (parent, name) = match self.parent(path, false) {
            Ok(found) => found,
            // The engine removed or replaced a directory above it, so the file does not exist.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        match unlinkat(&parent, name, UnlinkatFlags::NoRemoveDir) {
            // It is a directory of that name, made by the engine.
            Ok(()) | Err(Errno::ENOENT | Errno::EISDIR) => {}
            Err(error) => return Err(failed(error)),
        }
        for dir in path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty()) {
            let Ok((parent, name)) = self.parent(dir, false) else { break };
            // Not empty: it holds files of the engine.
            if unlinkat(&parent, name, UnlinkatFlags::RemoveDir).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn rename(&self, from: &str, path: &Path) -> Result<(), Error> {
        let rename = || {
            let (parent, name) = self.parent(path, true)?;
            renameat(&self.filled()?, from, &parent, name)
        };
        rename().map_err(|error| {
            let shown = path.display();
            self.error(&match error {
                Errno::ENOTDIR | Errno::ELOOP => format!(
                    "{shown} needs a directory where there is a file or a link: remove that"
                ),
                Errno::EISDIR => format!("{shown} is a directory there: remove it"),
                Errno::EXDEV => format!(
                    "{shown} lies on another mount: stage a config of its own to that mount"
                ),
                other => return self.failed(&format!("cannot put {shown} in place"), other),
            })
        })
    }

    /// The directory a path is in, and its name there.
    fn parent<'a>(&self, path: &'a Path, make: bool) -> nix::Result<(OwnedFd, &'a Path)> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::EINVAL);
        };
        let mut fd = openat(&self.fd, c".", STEP, Mode::empty())?;
        for step in parent.components() {
            let step = step.as_os_str().as_bytes();
            let below = match openat(&fd, step, STEP, Mode::empty()) {
                Err(Errno::ENOENT) if make => make_directory(&fd, step)?,
                below => below?,
            };
            fd = below;
        }
        Ok((fd, Path::new(name)))
    }
}

fn error(target: &Path, fault: &str) -> Error {
    Error::Target(format!("cannot stage into {}: {fault}", target.display()))
}

/// A directory that all users may enter, as the kubelet makes them, whatever the umask is.
fn make_directory(parent: &OwnedFd, name: &[u8]) -> nix::Result<OwnedFd> {
    mkdirat(parent, name, Mode::S_IRWXU)?;
    let made = openat(parent, name, DIRECTORY | OFlag::O_NOFOLLOW, Mode::empty())?;
    fchmod(&made, Mode::from_bits_truncate(0o755))?;
    Ok(made)
}

/// Sets a file's owner, group and permissions, as far as the manager may.
fn give(file: &File, access: Permissions) -> nix::Result<()> {
    let mut mode = access.mode & 0o777 | 0o400;
    if fchown(file, None, Some(Gid::from_raw(access.gid))).is_err() {
        mode &= !0o070;
    }
    fchmod(file, Mode::from_bits_truncate(mode))?;
    // Only root may change the owner, and it must come last. Otherwise the copy belongs to the
    // manager's uid, which is the engine's, too.
    let _ = fchown(file, Some(Uid::from_raw(access.uid)), None);
    Ok(())
}
