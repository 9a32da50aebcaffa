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

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, open, openat, openat2, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};

use super::ConfigSettings;
use super::generation::{
    self, DIRECTORY, Entry, Generation, Mount, Permissions, Problem, READ, Stamp, Unread, kind,
    lossy,
};
use super::progress::Progress;
use stayput_api::checksum::{ContentDigest, FileDigest};
use stayput_api::{is_settings_file, without_initial_masters};

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

/// The largest settings file in which `cluster.initial_master_nodes` is looked for, in bytes.
const MAX_SETTINGS: usize = 256 * 1024;

/// There are more files or bytes than the settings allow: the walk ends.
struct TooMuch;

/// Files and problems that a walk has found so far.
struct Findings<'a> {
    settings: &'a ConfigSettings,
    /// Index of the config directory that is being walked.
    dir: usize,
    generation: Generation,
    /// True if something changed during the walk.
    changed: bool,
    files: usize,
    bytes: u64,
}

impl<'a> Findings<'a> {
    fn new(settings: &'a ConfigSettings) -> Self {
        let generation = Generation::default();
        Self { settings, dir: 0, generation, changed: false, files: 0, bytes: 0 }
    }

    /// Enters the config directory with this index: everything that follows is below it. Returns its path.
    fn enter(&mut self, dir: usize) -> PathBuf {
        self.dir = dir;
        self.path(Path::new(""))
    }

    /// The most names to take from one directory: one more than allowed is enough for the next
    /// [count](Self::count) to notice.
    fn most_names(&self) -> usize {
        self.settings.max_files.saturating_add(1)
    }

    /// Counts a file or directory that was found.
    fn count(&mut self) -> Result<(), TooMuch> {
        self.files += 1;
        if self.files > self.settings.max_files {
            return self.too_much(format!(
                "there are more than {} files and directories below the --config directories: \
                 mount a directory that holds only the config",
                self.settings.max_files
            ));
        }
        Ok(())
    }

    /// Notes that a config directory does not exist.
    fn absent(&mut self, path: PathBuf) {
        self.problem(Path::new(""), "does not exist: mount the config there, or correct --config");
        self.generation.fingerprint.absent.push(path);
    }

    /// Notes a directory that was read and whose entries may change.
    fn watch(&mut self, at: &Path) {
        let path = self.path(at);
        self.generation.directories.push(path);
    }

    /// Notes a plain file or directory that was read and can change in place.
    fn stamp(&mut self, at: &Path, stat: &FileStat) {
        let path = self.path(at);
        self.generation.fingerprint.stamps.push((path, Stamp::of(stat)));
    }

    /// Notes a kubelet volume that was found.
    fn mount(&mut self, at: &Path, identity: (u64, u64), target: PathBuf) {
        let path = self.path(at);
        self.generation.fingerprint.mounts.push(Mount { path, identity, target });
    }

    /// Reads a file. `immutable`: the file cannot change in place.
    fn file(&mut self, fd: OwnedFd, at: &Path, immutable: bool) -> Result<(), TooMuch> {
        let left = self.settings.max_bytes.saturating_sub(self.bytes);
        let is_settings = is_settings_file(&at.to_string_lossy());
        let mut settings = Vec::new();
        match generation::read_file(fd, left, |piece| {
            self.bytes += piece.len() as u64;
            if is_settings && settings.len() <= MAX_SETTINGS {
                settings.extend_from_slice(piece);
            }
            Ok(())
        }) {
            Ok(content) => {
                if !immutable {
                    self.stamp(at, &content.stat);
                }
                let listed = self.listed(at);
                self.generation.entries.push(Entry {
                    dir: self.dir,
                    relative: at.to_owned(),
                    live: self.settings.is_live(&listed),
                    file: FileDigest { path: listed, sha256: content.sha256 },
                    formed: without_initial_masters(&settings)
                        .filter(|_| settings.len() <= MAX_SETTINGS)
                        .map(|formed| ContentDigest::of(&formed)),
                    access: Permissions {
                        mode: content.stat.st_mode & 0o777,
                        uid: content.stat.st_uid,
                        gid: content.stat.st_gid,
                    },
                });
            }
            Err(Unread::Changed) => self.changed = true,
            Err(Unread::NotRegular) => self.problem(at, NOT_REGULAR),
            Err(Unread::Failed(error)) => self.problem(at, &format!("cannot be read: {error}")),
            Err(Unread::TooLarge) => {
                return self.too_much(format!(
                    "the files below the --config directories have more than {} bytes together, \
                     passed at {}: mount a directory that holds only the config",
                    self.settings.max_bytes,
                    self.path(at).display()
                ));
            }
        }
        Ok(())
    }

    /// Notes a problem with this path. `what` continues the sentence after the path.
    fn problem(&mut self, at: &Path, what: &str) {
        let listed = self.listed(at);
        let message = format!("{} {what}", lossy(self.path(at).as_os_str().as_bytes()));
        let hides_checksum = at.as_os_str().is_empty() || !self.settings.is_live(&listed);
        self.generation.problems.push(Problem { message, hides_checksum });
    }

    fn too_much(&mut self, message: String) -> Result<(), TooMuch> {
        self.generation.problems.push(Problem { message, hides_checksum: true });
        Err(TooMuch)
    }

    fn path(&self, at: &Path) -> PathBuf {
        let root = &self.settings.dirs[self.dir].path;
        if at.as_os_str().is_empty() { root.clone() } else { root.join(at) }
    }

    fn listed(&self, at: &Path) -> Vec<u8> {
        match &self.settings.dirs[self.dir].name {
            Some(name) => Path::new(name).join(at).into_os_string().into_vec(),
            None => at.as_os_str().as_bytes().to_owned(),
        }
    }
}

const NOT_REGULAR: &str =
    "is not a regular file: a config directory must hold only files and directories";

const LOOP: &str = "leads back into itself, or is nested too deeply: remove the link";

/// Message for a file or directory that could not be opened or read.
fn unreadable(error: Errno) -> String {
    match error {
        Errno::EACCES | Errno::EPERM => format!(
            "cannot be read by uid {}: let it, with fsGroup, or with defaultMode of the volume",
            nix::unistd::geteuid()
        ),
        Errno::ENOTDIR => "is not a directory".to_owned(),
        other => format!("cannot be read: {}", other.desc()),
    }
}

/// Message for a link that could not be followed.
fn broken_link(error: Errno) -> String {
    match error {
        Errno::ELOOP => "is a link that leads back to itself".to_owned(),
        Errno::ENOENT => "is a link to nothing".to_owned(),
        Errno::EXDEV => "is a link out of the config directory: put the file there, or give the \
                         directory it is in to --config as well"
            .to_owned(),
        Errno::ENXIO => NOT_REGULAR.to_owned(),
        Errno::ENOSYS | Errno::EPERM => format!(
            "is a link, and this kernel or its seccomp profile does not let us follow links safely \
             (openat2: {}): put the file there",
            error.desc()
        ),
        other => unreadable(other),
    }
}

#[cfg(test)]
mod tests;
