//! Walks the config directories through descriptors, never by a path that may move meanwhile.
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
use nix::sys::stat::{Mode, SFlag, fstat, fstatat};

use super::content::{self, DIRECTORY, READ, Unread, kind};
use super::generation::{Access, Entry, Generation, Mount, Problem, Stamp, lossy};
use super::settings::ConfigSettings;
use stayput_api::checksum::FileDigest;

/// Nobody nests a config deeper; every level holds a descriptor.
const DEEPEST: usize = 32;
/// The kubelet's link to the current generation.
const DATA: &CStr = c"..data";

/// A reading and whether something moved under it.
#[derive(Debug)]
pub(super) struct Walked {
    pub(super) generation: Generation,
    pub(super) moved: bool,
}

/// Reads every config directory once.
pub(super) fn walk(settings: &ConfigSettings) -> Walked {
    let mut walk = Walk {
        settings,
        dir: 0,
        generation: Generation::default(),
        moved: false,
        ancestors: Vec::new(),
        seen: 0,
        bytes: 0,
    };
    for dir in 0..settings.dirs.len() {
        walk.dir = dir;
        if walk.root().is_err() {
            walk.generation.cut_short = true;
            break;
        }
    }
    Walked { generation: walk.generation, moved: walk.moved }
}

/// More than the settings allow: the walk ends.
struct TooMuch;

struct Walk<'a> {
    settings: &'a ConfigSettings,
    /// Index of the config directory that is being walked.
    dir: usize,
    generation: Generation,
    moved: bool,
    /// Device and inode of the directories we are in, to notice loops.
    ancestors: Vec<(u64, u64)>,
    seen: usize,
    bytes: u64,
}

/// What links inside a directory may not leave.
#[derive(Clone, Copy)]
struct Base<'a> {
    fd: BorrowedFd<'a>,
    /// Length of the base's own path below the config directory.
    depth: usize,
    /// Below a `..data`: nothing in it changes.
    immutable: bool,
}

impl Walk<'_> {
    fn root(&mut self) -> Result<(), TooMuch> {
        let path = self.settings.dirs[self.dir].path.clone();
        match open(&path, DIRECTORY, Mode::empty()) {
            Ok(fd) => {
                let base = Base { fd: fd.as_fd(), depth: 0, immutable: false };
                self.directory(base, &fd, Path::new(""))
            }
            Err(Errno::ENOENT) => {
                self.problem(
                    Path::new(""),
                    "does not exist: mount the config there, or correct --config",
                );
                self.generation.ground.absent.push(path);
                Ok(())
            }
            Err(error) => {
                self.problem(Path::new(""), &unreadable(error));
                self.place(Path::new(""));
                Ok(())
            }
        }
    }

    fn directory(&mut self, base: Base<'_>, fd: &OwnedFd, at: &Path) -> Result<(), TooMuch> {
        let stat = match fstat(fd) {
            Ok(stat) => stat,
            Err(error) => {
                self.problem(at, &unreadable(error));
                return Ok(());
            }
        };
        let identity = (stat.st_dev, stat.st_ino);
        if self.ancestors.contains(&identity) || self.ancestors.len() >= DEEPEST {
            self.problem(at, "leads back into itself, or is nested too deeply: remove the link");
            return Ok(());
        }
        self.ancestors.push(identity);
        let target = if base.immutable { Err(Errno::ENOENT) } else { readlinkat(fd, DATA) };
        let result = match target {
            Ok(target) => {
                self.place(at);
                self.volume(base, fd, at, identity, PathBuf::from(target))
            }
            Err(_) => {
                if !base.immutable {
                    self.place(at);
                    let path = self.path(at);
                    self.generation.ground.stamps.push((path, Stamp::of(&stat)));
                }
                self.names(fd, at).and_then(|names| {
                    names.iter().try_for_each(|name| self.entry(base, fd, at, name))
                })
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
            self.problem(at, &format!("has a ..data that points to {target}, not beside itself"));
            return Ok(());
        }
        let data = openat(fd, target.as_path(), DIRECTORY | OFlag::O_NOFOLLOW, Mode::empty());
        let path = self.path(at);
        self.generation.ground.mounts.push(Mount { path, identity, target });
        let data = match data {
            Ok(data) => data,
            // Removed after a swap: the check of the ground finds another target and reads again.
            Err(error) => {
                self.problem(at, &format!("has a ..data that {}", unreadable(error)));
                return Ok(());
            }
        };
        // Names that are not the kubelet's links hide what lies under them in the generation.
        let mut own = BTreeSet::new();
        for name in self.names(fd, at)? {
            let kubelets = match readlinkat(fd, name.as_c_str()) {
                Ok(link) => link.as_bytes().strip_prefix(b"..data/") == Some(name.as_bytes()),
                // The kubelet unlinks a name that went with a swap only after it.
                Err(error) => error == Errno::ENOENT,
            };
            if !kubelets {
                own.insert(name);
            }
        }
        let base =
            Base { fd: data.as_fd(), depth: at.as_os_str().as_bytes().len(), immutable: true };
        for name in self.names(&data, at)? {
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
        self.seen += 1;
        if self.seen > self.settings.max_files {
            return self.too_much(format!(
                "there are more than {} files and directories below the --config directories: \
                 mount a directory that holds only the config",
                self.settings.max_files
            ));
        }
        let opened = match fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW).map(|s| kind(&s)) {
            Ok(SFlag::S_IFREG) => openat(parent, name, READ | OFlag::O_NOFOLLOW, Mode::empty()),
            Ok(SFlag::S_IFDIR) => {
                openat(parent, name, DIRECTORY | OFlag::O_NOFOLLOW, Mode::empty())
            }
            Ok(SFlag::S_IFLNK) => return self.link(base, &relative),
            Ok(_) => {
                self.problem(&relative, SPECIAL);
                return Ok(());
            }
            Err(error) => Err(error),
        };
        match opened {
            Ok(fd) => self.opened(base, fd, &relative),
            // Removed since the directory was listed.
            Err(Errno::ENOENT) => {
                self.moved = true;
                Ok(())
            }
            Err(error) => {
                self.problem(&relative, &unreadable(error));
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
            Err(error) => {
                let why = match error {
                    Errno::ELOOP => "is a link that leads back to itself".to_owned(),
                    Errno::ENOENT => "is a link to nothing".to_owned(),
                    Errno::EXDEV => {
                        "is a link out of the config directory: put the file there, or \
                         give the directory it is in to --config as well"
                            .to_owned()
                    }
                    Errno::ENXIO => SPECIAL.to_owned(),
                    Errno::ENOSYS | Errno::EPERM => format!(
                        "is a link, and this kernel or its seccomp profile does not let us follow \
                         links safely (openat2: {}): put the file there",
                        error.desc()
                    ),
                    other => unreadable(other),
                };
                self.problem(at, &why);
                Ok(())
            }
        }
    }

    fn opened(&mut self, base: Base<'_>, fd: OwnedFd, at: &Path) -> Result<(), TooMuch> {
        if fstat(&fd).is_ok_and(|stat| kind(&stat) == SFlag::S_IFDIR) {
            return self.directory(base, &fd, at);
        }
        let left = self.settings.max_bytes.saturating_sub(self.bytes);
        match content::read(fd, left, |piece| {
            self.bytes += piece.len() as u64;
            Ok(())
        }) {
            Ok(content) => {
                if !base.immutable {
                    let path = self.path(at);
                    self.generation.ground.stamps.push((path, Stamp::of(&content.stat)));
                }
                let listed = self.listed(at);
                self.generation.entries.push(Entry {
                    dir: self.dir,
                    relative: at.to_owned(),
                    live: self.settings.is_live(&listed),
                    file: FileDigest { path: listed, sha256: content.sha256 },
                    access: Access {
                        mode: content.stat.st_mode & 0o777,
                        uid: content.stat.st_uid,
                        gid: content.stat.st_gid,
                    },
                });
            }
            Err(Unread::Changed) => self.moved = true,
            Err(Unread::Special) => self.problem(at, SPECIAL),
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

    /// Names in a directory but for the kubelet's own, bounded.
    fn names(&mut self, fd: &OwnedFd, at: &Path) -> Result<Vec<CString>, TooMuch> {
        // Through a descriptor of its own: a shared one would share its reading position.
        let mut names = Vec::new();
        let mut dir = match Dir::openat(fd, c".", DIRECTORY, Mode::empty()) {
            Ok(dir) => dir,
            Err(error) => {
                self.problem(at, &unreadable(error));
                return Ok(names);
            }
        };
        for entry in dir.iter() {
            match entry {
                Ok(entry) if is_kubelets(entry.file_name()) => {}
                Ok(entry) => names.push(entry.file_name().to_owned()),
                Err(error) => {
                    self.problem(at, &unreadable(error));
                    break;
                }
            }
            // One more than allowed is enough for the next count to notice.
            if names.len() > self.settings.max_files {
                break;
            }
        }
        names.sort();
        Ok(names)
    }

    fn place(&mut self, at: &Path) {
        let path = self.path(at);
        self.generation.places.push(path);
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

    fn problem(&mut self, at: &Path, why: &str) {
        let listed = self.listed(at);
        let sentence = format!("{} {why}", lossy(self.path(at).as_os_str().as_bytes()));
        let hides_checksum = at.as_os_str().is_empty() || !self.settings.is_live(&listed);
        self.generation.problems.push(Problem { sentence, hides_checksum });
    }

    fn too_much(&mut self, sentence: String) -> Result<(), TooMuch> {
        self.generation.problems.push(Problem { sentence, hides_checksum: true });
        Err(TooMuch)
    }
}

const SPECIAL: &str =
    "is not a regular file: a config directory must hold only files and directories";

/// `.`, `..`, `..data`, `..2026_…`: the directory's own and the kubelet's.
fn is_kubelets(name: &CStr) -> bool {
    name.to_bytes() == b"." || name.to_bytes().starts_with(b"..")
}

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
