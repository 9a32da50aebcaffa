//! Findings of a walk so far: files, problems, directories to watch; bounded by the settings.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::FileStat;

use super::super::content::{self, Unread};
use super::super::fingerprint::{Mount, Stamp};
use super::super::generation::{Entry, Generation, Permissions, Problem, lossy};
use super::super::settings::ConfigSettings;
use super::messages::NOT_REGULAR;
use stayput_api::checksum::{ContentDigest, FileDigest};
use stayput_api::{is_settings_file, without_initial_masters};

/// The largest settings file in which `cluster.initial_master_nodes` is looked for, in bytes.
const MAX_SETTINGS: usize = 256 * 1024;

/// There are more files or bytes than the settings allow: the walk ends.
pub(super) struct TooMuch;

/// Files and problems that a walk has found so far.
pub(super) struct Findings<'a> {
    settings: &'a ConfigSettings,
    /// Index of the config directory that is being walked.
    dir: usize,
    pub(super) generation: Generation,
    /// True if something changed during the walk.
    pub(super) changed: bool,
    files: usize,
    bytes: u64,
}

impl<'a> Findings<'a> {
    pub(super) fn new(settings: &'a ConfigSettings) -> Self {
        let generation = Generation::default();
        Self { settings, dir: 0, generation, changed: false, files: 0, bytes: 0 }
    }

    /// Enters the config directory with this index: everything that follows is below it. Returns its path.
    pub(super) fn enter(&mut self, dir: usize) -> PathBuf {
        self.dir = dir;
        self.path(Path::new(""))
    }

    /// The most names to take from one directory: one more than allowed is enough for the next
    /// [count](Self::count) to notice.
    pub(super) fn most_names(&self) -> usize {
        self.settings.max_files.saturating_add(1)
    }

    /// Counts a file or directory that was found.
    pub(super) fn count(&mut self) -> Result<(), TooMuch> {
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
    pub(super) fn absent(&mut self, path: PathBuf) {
        self.problem(Path::new(""), "does not exist: mount the config there, or correct --config");
        self.generation.fingerprint.absent.push(path);
    }

    /// Notes a directory that was read and whose entries may change.
    pub(super) fn watch(&mut self, at: &Path) {
        let path = self.path(at);
        self.generation.directories.push(path);
    }

    /// Notes a plain file or directory that was read and can change in place.
    pub(super) fn stamp(&mut self, at: &Path, stat: &FileStat) {
        let path = self.path(at);
        self.generation.fingerprint.stamps.push((path, Stamp::of(stat)));
    }

    /// Notes a kubelet volume that was found.
    pub(super) fn mount(&mut self, at: &Path, identity: (u64, u64), target: PathBuf) {
        let path = self.path(at);
        self.generation.fingerprint.mounts.push(Mount { path, identity, target });
    }

    /// Reads a file. `immutable`: the file cannot change in place.
    pub(super) fn file(&mut self, fd: OwnedFd, at: &Path, immutable: bool) -> Result<(), TooMuch> {
        let left = self.settings.max_bytes.saturating_sub(self.bytes);
        let is_settings = is_settings_file(&at.to_string_lossy());
        let mut settings = Vec::new();
        match content::read(fd, left, |piece| {
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
    pub(super) fn problem(&mut self, at: &Path, what: &str) {
        let listed = self.listed(at);
        let message = format!("{} {what}", lossy(self.path(at).as_os_str().as_bytes()));
        let hides_checksum = at.as_os_str().is_empty() || !self.settings.is_live(&listed);
        self.generation.problems.push(Problem { message, hides_checksum });
    }

    fn too_much(&mut self, message: String) -> Result<(), TooMuch> {
        self.generation.problems.push(Problem { message, hides_checksum: true });
        Err(TooMuch)
    }

    pub(super) fn path(&self, at: &Path) -> PathBuf {
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
