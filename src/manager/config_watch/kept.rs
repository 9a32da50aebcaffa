//! Kept copies of generations. **They hold the config's secrets**, so the files are 0600 in
//! directories of 0700, and they are only kept if the user asked for it.
//!
//! ```text
//! last-good ─► 2c26b4…        the generation that last proved itself
//! candidate ─► 5891b5…        it became ready, and has not proved itself yet
//! pinned ─► 5891b5…           what the engine was last told to run
//! pinned-before ─► 2c26b4…    before that: the journal may not have the last start yet
//! 2c26b4…/record.json, 0, 1…  a whole generation, under the digits of its checksum
//! ```
//! Each is made, or made to point elsewhere, by one rename. A generation that nothing points to is
//! removed.

mod disk;
mod error;
mod generation;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use error::{KeptError, RecordError};
pub(super) use generation::{Kept, Staged, StagedFile};

use super::progress::Progress;
use stayput_api::checksum::Checksum;

const LAST_GOOD: &str = "last-good";
const CANDIDATE: &str = "candidate";
const PINNED: &str = "pinned";
const PINNED_BEFORE: &str = "pinned-before";
/// A generation that is being written.
const NEW: &str = "new";
/// A link that is being written.
const NEW_LINK: &str = "new-link";
/// Prefix of a checksum; the names of the directories do not have it.
const ALGORITHM: &str = "sha256:";

/// Role in which a generation is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Pinned,
    /// Was ready, and has not proved itself yet. Becomes the last good generation at once where
    /// there is no other.
    Candidate,
    LastGood,
}

/// The directory of the kept generations.
#[derive(Debug)]
pub(super) struct Store {
    root: PathBuf,
}

impl Store {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The last good generation, if there is one.
    pub(super) fn last_good(&self, progress: &Progress) -> Result<Option<Kept>, KeptError> {
        progress.keep(&self.root);
        match self.named(LAST_GOOD) {
            Some(name) => self.load(&name),
            None => Ok(None),
        }
    }

    /// The kept generation with this checksum, if there is one.
    pub(super) fn find(
        &self,
        checksum: &Checksum,
        progress: &Progress,
    ) -> Result<Option<Kept>, KeptError> {
        progress.keep(&self.root);
        self.load(&directory(checksum))
    }

    fn load(&self, name: &Path) -> Result<Option<Kept>, KeptError> {
        let path = self.root.join(name);
        match Kept::load(&path) {
            Ok(Some(kept)) if directory(&kept.checksum) != name => {
                Err(KeptError::Unusable { path, source: RecordError::OtherFiles })
            }
            loaded => loaded.map_err(|source| KeptError::Unusable { path, source }),
        }
    }

    /// Target of a link, if the link exists.
    fn named(&self, link: &str) -> Option<PathBuf> {
        fs::read_link(self.root.join(link)).ok()
    }

    /// Keeps a generation.
    ///
    /// # Errors
    /// The reason why the generation is not kept; all earlier ones are still kept then.
    pub(super) fn keep(
        &self,
        staged: &Staged,
        role: Role,
        progress: &Progress,
    ) -> Result<(), KeptError> {
        progress.keep(&self.root);
        let failed = |source| KeptError::Unwritten { root: self.root.clone(), source };
        let name = directory(&staged.checksum);
        let kept = self.load(&name);
        if !kept.is_ok_and(|kept| kept.is_some_and(|kept| kept.is_intact())) {
            let write = || {
                disk::make_directory(&self.root)?;
                generation::write(staged, &self.root.join(NEW), &self.root.join(&name))
            };
            if let Some(file) = write().map_err(failed)? {
                return Err(KeptError::Changed { file });
            }
        }
        self.assign(&name, role, progress).and_then(|()| self.sweep()).map_err(failed)
    }

    fn assign(&self, name: &Path, role: Role, progress: &Progress) -> io::Result<()> {
        let better = || self.last_good(progress).is_ok_and(|kept| kept.is_some());
        match role {
            Role::Pinned => match self.named(PINNED) {
                Some(before) if before == name => {}
                Some(before) => {
                    self.point(PINNED_BEFORE, &before)?;
                    self.point(PINNED, name)?;
                }
                None => self.point(PINNED, name)?,
            },
            Role::Candidate if better() => self.point(CANDIDATE, name)?,
            Role::Candidate | Role::LastGood => {
                self.point(LAST_GOOD, name)?;
                disk::remove(&self.root.join(CANDIDATE))?;
            }
        }
        disk::sync(&self.root)
    }

    fn point(&self, link: &str, name: &Path) -> io::Result<()> {
        disk::point(&self.root.join(link), name, &self.root.join(NEW_LINK))
    }

    /// Removes entries that nothing points to, also unfinished generations.
    fn sweep(&self) -> io::Result<()> {
        const LINKS: [&str; 4] = [LAST_GOOD, CANDIDATE, PINNED, PINNED_BEFORE];
        let used: Vec<OsString> = LINKS
            .into_iter()
            .flat_map(|link| [Some(link.into()), self.named(link).map(PathBuf::into_os_string)])
            .flatten()
            .collect();
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            if !used.contains(&entry.file_name()) {
                disk::remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// The name of a generation's directory.
fn directory(checksum: &Checksum) -> PathBuf {
    PathBuf::from(checksum.as_str().trim_start_matches(ALGORITHM))
}
