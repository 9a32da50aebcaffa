//! Walks the config directories through descriptors, never by a path, which may change meanwhile.
//!
//! A kubelet volume looks like this (pkg/volume/util/atomic_writer.go):
//! ```text
//! elasticsearch.yml -> ..data/elasticsearch.yml
//! ..data -> ..2026_11_21_09_00_00.123456789          swapped by one rename
//! ..2026_11_21_09_00_00.123456789/elasticsearch.yml  never changed, removed after the swap
//! ```
//! `..data` is resolved once and everything is read below the directory it named. Such a volume may
//! also lie inside a plain directory, as ECK mounts certificates below the engine's config.

mod findings;
mod messages;

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, open, openat, openat2, readlinkat};
use nix::sys::stat::{Mode, SFlag, fstat, fstatat};

use super::content::{DIRECTORY, READ, kind};
use super::generation::Generation;
use super::progress::Progress;
use super::settings::ConfigSettings;
use findings::{Findings, TooMuch};
use messages::{LOOP, NOT_REGULAR, broken_link, unreadable};

/// Deepest nesting of a config; every level holds a descriptor.
const MAX_DEPTH: usize = 32;
/// The kubelet's link to the current generation.
const DATA: &CStr = c"..data";

/// A reading and whether something changed during it.
#[derive(Debug)]
pub(super) struct Walked {
    pub(super) generation: Generation,
    pub(super) changed: bool,
}

/// Reads every config directory once.
pub(super) fn walk(settings: &ConfigSettings, progress: &Progress) -> Walked {
    let mut walk = Walk { found: Findings::new(settings), ancestors: Vec::new(), progress };
    let whole = (0..settings.dirs.len()).try_for_each(|dir| walk.root(dir));
    let Findings { mut generation, changed, .. } = walk.found;
    generation.cut_short = whole.is_err();
    Walked { generation, changed }
}

struct Walk<'a> {
    found: Findings<'a>,
    /// Device and inode of the directories we are in, to notice loops.
    ancestors: Vec<(u64, u64)>,
    progress: &'a Progress,
}

/// The directory that links must not lead out of.
#[derive(Clone, Copy)]
struct Base<'a> {
    fd: BorrowedFd<'a>,
    /// Length of the base's own path below the config directory.
    depth: usize,
    /// True below a `..data`: nothing in it changes.
    immutable: bool,
}

impl Walk<'_> {
    fn root(&mut self, dir: usize) -> Result<(), TooMuch> {
        let path = self.found.enter(dir);
        self.progress.read(&path);
        match open(&path, DIRECTORY, Mode::empty()) {
            Ok(fd) => {
                let base = Base { fd: fd.as_fd(), depth: 0, immutable: false };
                self.directory(base, &fd, Path::new(""))
            }
            Err(Errno::ENOENT) => {
                self.found.absent(path);
                Ok(())
            }
            Err(error) => {
                self.found.problem(Path::new(""), &unreadable(error));
                self.found.watch(Path::new(""));
                Ok(())
            }
        }
    }

    fn directory(&mut self, base: Base<'_>, fd: &OwnedFd, at: &Path) -> Result<(), TooMuch> {
        let stat = match fstat(fd) {
            Ok(stat) => stat,
            Err(error) => {
                self.found.problem(at, &unreadable(error));
                return Ok(());
            }
        };
        let identity = (stat.st_dev, stat.st_ino);
        if self.ancestors.contains(&identity) || self.ancestors.len() >= MAX_DEPTH {
            self.found.problem(at, LOOP);
            return Ok(());
        }
        self.ancestors.push(identity);
        let target = if base.immutable { Err(Errno::ENOENT) } else { readlinkat(fd, DATA) };
        let result = match target {
            Ok(target) => {
                self.found.watch(at);
                self.volume(base, fd, at, identity, PathBuf::from(target))
            }
            Err(_) => {
                if !base.immutable {
                    self.found.watch(at);
                    self.found.stamp(at, &stat);
                }
                let names = self.names(fd, at);
                names.iter().try_for_each(|name| self.entry(base, fd, at, name))
            }
        };
        self.ancestors.pop();
        result
    }

    /// A directory with a `..data`.
    fn volume(
        &mut self,
        outer: Base<'_>,
        fd: &OwnedFd,
        at: &Path,
        identity: (u64, u64),
        target: PathBuf,
    ) -> Result<(), TooMuch> {
        let value = target.as_os_str().as_bytes();
        if !value.starts_with(b"..") || value == b".." || value.contains(&b'/') {
            let target = target.display();
            self.found
                .problem(at, &format!("has a ..data that points to {target}, not beside itself"));
            return Ok(());
        }
        let data = openat(fd, target.as_path(), DIRECTORY | OFlag::O_NOFOLLOW, Mode::empty());
        self.found.mount(at, identity, target);
        let data = match data {
            Ok(data) => data,
            // Removed after a swap: the check of the fingerprint finds another target and reads again.
            Err(error) => {
                self.found.problem(at, &format!("has a ..data that {}", unreadable(error)));
                return Ok(());
            }
        };
        // A name in the volume that is not the kubelet's link hides the same name in the
        // generation.
        let mut own = BTreeSet::new();
        for name in self.names(fd, at) {
            let kubelets = match readlinkat(fd, name.as_c_str()) {
                Ok(link) => link.as_bytes().strip_prefix(b"..data/") == Some(name.as_bytes()),
                // After a swap, the kubelet still has to remove the links to names that are gone.
                Err(error) => error == Errno::ENOENT,
            };
            if !kubelets {
                own.insert(name);
            }
        }
        let base =
            Base { fd: data.as_fd(), depth: at.as_os_str().as_bytes().len(), immutable: true };
        for name in self.names(&data, at) {
            if !own.contains(&name) {
                self.entry(base, &data, at, &name)?;
            }
        }
        own.iter().try_for_each(|name| self.entry(outer, fd, at, name))
    }

    fn entry(
        &mut self,
        base: Base<'_>,
        parent: &OwnedFd,
        at: &Path,
        name: &CStr,
    ) -> Result<(), TooMuch> {
        let relative = at.join(OsStr::from_bytes(name.to_bytes()));
        self.found.count()?;
        self.progress.read(&self.found.path(&relative));
        let opened = match fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW).map(|s| kind(&s)) {
            Ok(SFlag::S_IFREG) => openat(parent, name, READ | OFlag::O_NOFOLLOW, Mode::empty()),
            Ok(SFlag::S_IFDIR) => {
                openat(parent, name, DIRECTORY | OFlag::O_NOFOLLOW, Mode::empty())
            }
            Ok(SFlag::S_IFLNK) => return self.link(base, &relative),
            Ok(_) => {
                self.found.problem(&relative, NOT_REGULAR);
                return Ok(());
            }
            Err(error) => Err(error),
        };
        match opened {
            Ok(fd) => self.opened(base, fd, &relative),
            // Removed since the directory was listed.
            Err(Errno::ENOENT) => {
                self.found.changed = true;
                Ok(())
            }
            Err(error) => {
                self.found.problem(&relative, &unreadable(error));
                Ok(())
            }
        }
    }

    /// A link that is not the kubelet's: followed as long as it stays in the directory.
    fn link(&mut self, base: Base<'_>, at: &Path) -> Result<(), TooMuch> {
        let from_base = &at.as_os_str().as_bytes()[base.depth..];
        let from_base = from_base.strip_prefix(b"/").unwrap_or(from_base);
        let how = OpenHow::new()
            .flags(READ)
            .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        match openat2(base.fd, Path::new(OsStr::from_bytes(from_base)), how) {
            Ok(fd) => self.opened(base, fd, at),
            // Something was renamed or mounted meanwhile, anywhere.
            Err(Errno::EAGAIN) => {
                self.found.changed = true;
                Ok(())
            }
            Err(error) => {
                self.found.problem(at, &broken_link(error));
                Ok(())
            }
        }
    }

    fn opened(&mut self, base: Base<'_>, fd: OwnedFd, at: &Path) -> Result<(), TooMuch> {
        if fstat(&fd).is_ok_and(|stat| kind(&stat) == SFlag::S_IFDIR) {
            self.directory(base, &fd, at)
        } else {
            self.found.file(fd, at, base.immutable)
        }
    }

    /// Names in a directory except the kubelet's own, bounded.
    fn names(&mut self, fd: &OwnedFd, at: &Path) -> Vec<CString> {
        // Through a new descriptor: a duplicated one would share the reading position.
        let mut names = Vec::new();
        let mut dir = match Dir::openat(fd, c".", DIRECTORY, Mode::empty()) {
            Ok(dir) => dir,
            Err(error) => {
                self.found.problem(at, &unreadable(error));
                return names;
            }
        };
        for entry in dir.iter() {
            match entry {
                Ok(entry) if is_kubelets(entry.file_name()) => {}
                Ok(entry) => names.push(entry.file_name().to_owned()),
                Err(error) => {
                    self.found.problem(at, &unreadable(error));
                    break;
                }
            }
            if names.len() >= self.found.most_names() {
                break;
            }
        }
        names.sort();
        names
    }
}

/// True for `.`, `..`, `..data`, `..2026_…`: the directory's own names and the kubelet's.
fn is_kubelets(name: &CStr) -> bool {
    name.to_bytes() == b"." || name.to_bytes().starts_with(b"..")
}

#[cfg(test)]
mod tests;
