//! Settings for watching, staging and keeping the config, as plain data.

use std::path::{Path, PathBuf};
use std::time::Duration;

use glob::{MatchOptions, Pattern};

/// A mounted config directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigDir {
    /// First component of the listed paths; needed where there are several directories.
    pub name: Option<String>,
    /// Path where the directory is mounted.
    pub path: PathBuf,
}

/// Copies a config directory at each start to where the engine reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// One of the config directories.
    pub source: PathBuf,
    /// A writable directory that exists.
    pub target: PathBuf,
}

/// Settings of this module.
#[derive(Debug, Clone)]
pub struct ConfigSettings {
    /// The config directories; empty if there is no config to watch.
    pub dirs: Vec<ConfigDir>,
    /// Listed paths that the engine reloads by itself: shown, not in the checksum.
    pub live: Vec<Pattern>,
    /// Directories to copy at each start, and their targets.
    pub stage: Vec<Stage>,
    /// Directory of the kept generations, inside the state directory. It holds secrets.
    pub keep_last_good: Option<PathBuf>,
    /// The most bytes all files together may have.
    pub max_bytes: u64,
    /// The most files and directories there may be.
    pub max_files: usize,
    /// Period of readings where changes cannot be watched, and only there.
    pub rescan: Duration,
}

impl Default for ConfigSettings {
    fn default() -> Self {
        Self {
            dirs: Vec::new(),
            live: Vec::new(),
            stage: Vec::new(),
            keep_last_good: None,
            // A Secret holds 1 MiB at most, and a projected volume joins a few of them.
            max_bytes: 16 * 1024 * 1024,
            max_files: 1_000,
            rescan: Duration::from_secs(30),
        }
    }
}

impl ConfigSettings {
    /// Contradictions in the settings, one message each; empty if the settings are consistent.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (at, dir) in self.dirs.iter().enumerate() {
            let path = dir.path.display();
            match &dir.name {
                None if self.dirs.len() > 1 => problems.push(format!(
                    "--config {path}: with several directories each needs a name: --config NAME={path}"
                )),
                None => {}
                Some(name) if name.is_empty() || name.starts_with('.') || name.contains('/') => problems.push(
                    format!("--config {name}={path}: the name must not be empty, begin with a dot or contain a slash"),
                ),
                Some(name) if self.dirs[..at].iter().any(|earlier| earlier.name == dir.name) => {
                    problems.push(format!("--config {name}={path}: the name {name} is given twice"));
                }
                Some(_) => {}
            }
        }
        for (at, stage) in self.stage.iter().enumerate() {
            let (source, target) = (stage.source.display(), stage.target.display());
            let option = format!("--stage {source}={target}");
            if self.dir_of(&stage.source).is_none() {
                problems.push(format!("{option}: {source} is not a --config directory"));
            }
            if self.dirs.iter().any(|dir| overlap(&dir.path, &stage.target)) {
                problems.push(format!(
                    "{option}: the target must be apart from the config directories"
                ));
            }
            if self.stage[..at].iter().any(|earlier| overlap(&earlier.target, &stage.target)) {
                problems.push(format!("{option}: another --stage writes to the same directory"));
            }
            if self.stage[..at].iter().any(|earlier| earlier.source == stage.source) {
                problems.push(format!("{option}: {source} is staged twice"));
            }
        }
        if self.keep_last_good.is_some() && !self.all_staged() {
            problems.push(
                "--keep-last-good: every --config directory must be staged with --stage, or the \
                 engine would read a part of the kept config from the mount"
                    .to_owned(),
            );
        }
        problems
    }

    /// True if the engine reloads the file at this listed path by itself.
    pub(super) fn is_live(&self, listed: &[u8]) -> bool {
        // As in a shell: `*` does not match a slash.
        let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
        let listed = String::from_utf8_lossy(listed);
        self.live.iter().any(|pattern| pattern.matches_with(&listed, options))
    }

    /// True if the engine reads nothing of the config from the mounts.
    pub fn all_staged(&self) -> bool {
        !self.dirs.is_empty() && self.dirs.iter().all(|dir| self.is_staged(&dir.path))
    }

    pub(super) fn is_staged(&self, path: &Path) -> bool {
        self.stage.iter().any(|stage| stage.source == path)
    }

    /// Index of the config directory at this path.
    pub(super) fn dir_of(&self, path: &Path) -> Option<usize> {
        self.dirs.iter().position(|dir| dir.path == path)
    }
}

fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}
