//! One reading of all config directories, as plain data.

use std::path::PathBuf;

use super::fingerprint::Fingerprint;
use super::settings::ConfigSettings;
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
