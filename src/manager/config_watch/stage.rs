//! Copies a verified generation to where the engine reads it, while the engine is down.
//!
//! 1. *Fill*: every file is copied into a directory of ours inside the target and its digest is
//!    compared with the one that was verified. Nothing the engine reads has changed yet, so a mount
//!    that moved, a full disk or a damaged copy leaves the target as it was.
//! 2. *Place*: the manifest of what is ours, first the old and the new together; then files that are
//!    gone are removed and new ones renamed into place; then the manifest of the new alone.
//!
//! A crash between any two steps is repaired by the next start, which runs all of them again: the
//! manifest names at every moment all that was ever placed. Files that the engine wrote are in no
//! manifest and are kept. No step follows a link inside the target.
//!
//! Access: owner, group and permission bits of the source, as far as we may give them. Where the
//! group may not be given, its permissions are dropped rather than given to another group. The
//! owner may always read: a manager that is not root is the engine's own user.

mod target;

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

use super::generation::Permissions;
use super::progress::Progress;
use stayput_api::checksum::ContentDigest;
use target::Target;

/// Files that an engine writes at its first start and renames when they are whole. One that is there
/// already is never written over: the engine ends with code 74, at this start and at each later one.
const UNFINISHED: [&str; 2] = ["elasticsearch.keystore.tmp", "opensearch.keystore.tmp"];

/// A file to copy.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// Path below the target.
    pub(super) relative: PathBuf,
    /// The path of its content.
    pub(super) source: PathBuf,
    /// The digest that its content must have.
    pub(super) sha256: ContentDigest,
    pub(super) access: Permissions,
}

/// A file that is linked to the mount, so that the engine sees its changes.
#[derive(Debug, Clone)]
pub(super) struct Link {
    /// Path below the target.
    pub(super) relative: PathBuf,
    /// The mounted file.
    pub(super) source: PathBuf,
}

/// All files and links of one target.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) target: PathBuf,
    pub(super) items: Vec<Item>,
    pub(super) links: Vec<Link>,
}

/// One step; the indices are those of the job's items and links.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Clear,
    Fill(usize),
    /// Write down the old and the new paths together.
    Announce,
    Remove(PathBuf),
    /// Remove files left by an engine that was ended in its first second.
    RemoveUnfinished,
    Place(usize),
    Link(usize),
    /// Write down the new paths alone.
    Settle,
    Finish,
}

/// A job in progress.
struct Staging<'a> {
    job: &'a Job,
    target: Target,
    /// The paths that were ours before.
    before: Manifest,
    progress: &'a Progress,
}

impl<'a> Staging<'a> {
    fn open(job: &'a Job, progress: &'a Progress) -> Result<Self, Error> {
        progress.stage(&job.target);
        let target = Target::open(&job.target)?;
        let before = Manifest::read(&target)?;
        Ok(Self { job, target, before, progress })
    }

    /// The paths that will be ours.
    fn after(&self) -> Result<Manifest, Error> {
        let items = self.job.items.iter().map(|item| &item.relative);
        let links = self.job.links.iter().map(|link| &link.relative);
        Manifest::of(&self.target, items.chain(links))
    }

    /// Copies everything; the engine sees nothing of it yet.
    fn filling(&self) -> Vec<Step> {
        let mut steps = vec![Step::Clear];
        steps.extend((0..self.job.items.len()).map(Step::Fill));
        steps
    }

    /// Puts the copies in place.
    fn placing(&self) -> Result<Vec<Step>, Error> {
        let after = self.after()?;
        let mut steps = Vec::new();
        // Usually a start has the same paths as the one before it, and writes no manifest.
        let moves = after != self.before;
        if moves {
            steps.push(Step::Announce);
        }
        steps.extend(self.before.without(&after).cloned().map(Step::Remove));
        steps.push(Step::RemoveUnfinished);
        steps.extend((0..self.job.items.len()).map(Step::Place));
        steps.extend((0..self.job.links.len()).map(Step::Link));
        if moves {
            steps.push(Step::Settle);
        }
        steps.push(Step::Finish);
        Ok(steps)
    }

    fn run(&self, step: &Step) -> Result<(), Error> {
        self.progress.stage(&self.job.target);
        match step {
            Step::Clear => self.target.clear(),
            Step::Fill(index) => self.fill(*index, &self.job.items[*index]),
            Step::Announce => self.before.and(&self.after()?).write(&self.target),
            Step::Remove(path) => self.target.remove(path),
            Step::RemoveUnfinished => {
                UNFINISHED.iter().try_for_each(|name| self.target.remove_unfinished(name))
            }
            Step::Place(index) => self.target.place(*index, &self.job.items[*index].relative),
            Step::Link(index) => {
                let link = &self.job.links[*index];
                self.target.link(&link.source, &link.relative)
            }
            Step::Settle => self.after()?.write(&self.target),
            Step::Finish => self.target.finish(),
        }
    }

    fn fill(&self, index: usize, item: &Item) -> Result<(), Error> {
        self.progress.copy(&item.source, &self.job.target);
        let fault = match self.target.fill(index, &item.source, item.access)? {
            Ok(sha256) if sha256 == item.sha256 => return Ok(()),
            Ok(_) => "its content is different".to_owned(),
            Err(unread) => unread.to_string(),
        };
        let file = item.source.display();
        Err(Error::Source(format!("{file} is not what was verified: {fault}")))
    }
}

/// Stages all jobs: first every copy is made, then every copy is put in place.
pub(super) fn stage(jobs: &[Job], progress: &Progress) -> Result<(), Error> {
    let open = |job| Staging::open(job, progress);
    let staging = jobs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let fill = |one: &Staging<'_>| one.filling().iter().try_for_each(|step| one.run(step));
    if let Err(error) = staging.iter().try_for_each(fill) {
        // Incomplete copies are useless and fill the disk. The first error is the one to report.
        for one in &staging {
            let _ = one.run(&Step::Finish);
        }
        return Err(error);
    }
    for one in &staging {
        one.placing()?.iter().try_for_each(|step| one.run(step))?;
    }
    Ok(())
}

/// True if a path stays below the directory it is joined to.
fn stays_below(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    !bytes.is_empty()
        && !bytes.contains(&0)
        && bytes.split(|byte| *byte == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
}

/// Why a generation could not be staged, with what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A source does not, or no longer, have the verified content.
    #[error("{0}")]
    Source(String),
    #[error("{0}")]
    Target(String),
}

/// The system's error, and what to do where that is known.
fn remedy(error: Errno) -> String {
    match error {
        Errno::EACCES | Errno::EPERM | Errno::EROFS => format!(
            "{}: uid {} must be able to write there; mount a writable volume there, such as an \
             emptyDir, that an init container fills with the image's files of this directory: an \
             empty one hides them",
            error.desc(),
            geteuid()
        ),
        Errno::ENOSPC | Errno::EDQUOT => {
            format!("{}: make room, or raise the volume's size limit", error.desc())
        }
        other => other.desc().to_owned(),
    }
}

// The manifest of our files in a target: `.stayput-staged.json` beside them.
//
// In the target and not in the state directory, because it must live exactly as long as what it
// describes: a target in the container's own layer is gone after a container restart.

/// Name of the manifest in the target.
const MANIFEST_NAME: &str = ".stayput-staged.json";
const SCHEMA: u32 = 1;
/// Large enough for the allowed number of files with long names.
const LARGEST: u64 = 4 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    schema: u32,
    /// Paths below the target. The BTreeSet keeps the file the same for the same paths.
    paths: BTreeSet<PathBuf>,
}

impl Manifest {
    /// The manifest with these paths.
    fn of<'a>(target: &Target, paths: impl Iterator<Item = &'a PathBuf>) -> Result<Self, Error> {
        let mut all = BTreeSet::new();
        all.extend(paths.cloned());
        for path in &all {
            if !stays_below(path) {
                return Err(target.error(&format!("{} is not a path below it", path.display())));
            }
            if path.to_str().is_none() {
                let path = path.display();
                return Err(
                    target.error(&format!("the name of {path} is not UTF-8: rename the file"))
                );
            }
            if path.starts_with(MANIFEST_NAME) || path.starts_with(target::FILLED) {
                let path = path.display();
                return Err(target.error(&format!("the config has a {path}, a name stayput needs")));
            }
        }
        Ok(Self { schema: SCHEMA, paths: all })
    }

    /// The manifest in the target; an empty one if there is none.
    fn read(target: &Target) -> Result<Self, Error> {
        let Some(text) = target.read(MANIFEST_NAME, LARGEST)? else {
            return Ok(Self { schema: SCHEMA, paths: BTreeSet::new() });
        };
        let unusable = |fault: &str| {
            target.error(&format!(
                "its {MANIFEST_NAME} {fault}, so it is not known which files there are the engine's: \
                 remove it, and every file there that an earlier config left"
            ))
        };
        let manifest: Self = serde_json::from_slice(&text)
            .map_err(|error| unusable(&format!("cannot be read ({error})")))?;
        if manifest.schema != SCHEMA {
            return Err(unusable("was written by another version of stayput"));
        }
        // The engine may write here, and the manager removes the listed files, possibly as root.
        if !manifest.paths.iter().all(|path| stays_below(path)) {
            return Err(unusable("lists files outside"));
        }
        Ok(manifest)
    }

    /// Replaces the manifest in the target, durably.
    fn write(&self, target: &Target) -> Result<(), Error> {
        let text = serde_json::to_vec(self)
            .map_err(|error| target.error(&format!("cannot write {MANIFEST_NAME}: {error}")))?;
        target.replace(MANIFEST_NAME, &text)
    }

    /// The paths of both manifests.
    fn and(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.paths.extend(other.paths.iter().cloned());
        both
    }

    /// The paths that are not in the other manifest.
    fn without<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a PathBuf> {
        self.paths.difference(&other.paths)
    }
}

#[cfg(test)]
mod tests;
