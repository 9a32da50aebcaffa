//! Right before a start: read, verify, stage. After the engine is ready for the first time: keep.

use std::fmt::Write as _;

use super::fingerprint::Fingerprint;
use super::generation::{Entry, Generation, lossy};
use super::last_good::{self, Candidate, LastGood, LastGoodError, Staged};
use super::observed::{Shared, Work};
use super::stage::{self, Item, Job, Link};
use stayput_api::checksum::Checksum;
use stayput_api::{Code, ConfigChoice, Refusal};

/// How often a generation is read again if it was swapped while it was copied.
const ATTEMPTS: usize = 4;

/// A config that was verified, and staged where that is set.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Checksum of what the engine will read; none where it is not known and was not requested.
    pub checksum: Option<Checksum>,
    /// Where it came from.
    pub choice: ConfigChoice,
    /// [`Observed::generation`](super::Observed::generation) when it was read. Where nothing is
    /// staged, a higher one before the engine is ready means that it may have read a mixture.
    pub generation: u64,
    /// Whether the engine reads only staged copies, so that later changes of the mounts do not
    /// reach it.
    pub staged: bool,
    /// The fingerprint of what the engine reads from the mounts.
    fingerprint: Fingerprint,
}

impl Prepared {
    /// Whether the mounts that the engine will read are still what was verified. A few system
    /// calls; what is staged cannot change.
    pub(super) fn still_current(&self) -> bool {
        self.fingerprint.is_current()
    }
}

impl Shared {
    pub(super) fn prepare(
        &self,
        choice: ConfigChoice,
        expected: Option<&Checksum>,
    ) -> Result<Prepared, Refusal> {
        let mut work = self.work();
        work.staged = None;
        match choice {
            ConfigChoice::Mounted => self.prepare_mounted(&mut work, expected),
            ConfigChoice::LastGood => self.prepare_last_good(&mut work, expected),
        }
    }

    fn prepare_mounted(
        &self,
        work: &mut Work,
        expected: Option<&Checksum>,
    ) -> Result<Prepared, Refusal> {
        let mut changed = String::new();
        for _ in 0..ATTEMPTS {
            let (read, generation) = self.observe(work);
            self.verify(&read, expected)?;
            if !self.settings.stage.is_empty() {
                let jobs = self.jobs(&read)?;
                match stage::stage(&jobs) {
                    Ok(()) => work.staged = self.staged(&read, jobs),
                    Err(error @ stage::Error::Source { .. }) => {
                        changed = error.to_string();
                        continue;
                    }
                    Err(error @ stage::Error::Target { .. }) => {
                        return Err(Refusal::new(Code::StageFailed, error.to_string()));
                    }
                }
            }
            let mounted = |path: &std::path::Path| {
                let mut dirs = self.settings.dirs.iter().filter(|dir| path.starts_with(&dir.path));
                dirs.any(|dir| !self.settings.is_staged(&dir.path))
            };
            return Ok(Prepared {
                checksum: read.checksum.clone(),
                choice: ConfigChoice::Mounted,
                generation,
                staged: self.settings.all_staged(),
                fingerprint: read.fingerprint.below(mounted),
            });
        }
        Err(Refusal::new(
            Code::StageFailed,
            format!("the config changed each of the {ATTEMPTS} times it was copied: {changed}"),
        ))
    }

    fn verify(&self, read: &Generation, expected: Option<&Checksum>) -> Result<(), Refusal> {
        let unknown = || read.messages().join("; ");
        match (&read.checksum, expected) {
            (Some(mounted), Some(expected)) if mounted != expected => Err(Refusal::new(
                Code::ChecksumMismatch,
                format!(
                    "the mounted config is {mounted}, not {expected}; mounted: {}; wait for the \
                     kubelet to bring the other config, or ask for the mounted one",
                    named_files(read)
                ),
            )),
            (None, Some(expected)) if self.settings.dirs.is_empty() => Err(Refusal::new(
                Code::ConfigUnknown,
                format!("{expected} is expected, and no --config directory is set"),
            )),
            (None, Some(expected)) => Err(Refusal::new(
                Code::ConfigUnknown,
                format!("whether the mounted config is {expected} is not known: {}", unknown()),
            )),
            (None, None) if !self.settings.stage.is_empty() => Err(Refusal::new(
                Code::StageFailed,
                format!("the config cannot be staged as a whole: {}", unknown()),
            )),
            (Some(_), _) | (None, None) => Ok(()),
        }
    }

    /// What has to be copied and linked for this generation.
    fn jobs(&self, read: &Generation) -> Result<Vec<Job>, Refusal> {
        self.for_each_stage(
            |dir| {
                let path = &self.settings.dirs[dir].path;
                let entries =
                    read.entries.iter().filter(move |entry| entry.dir == dir && !entry.live);
                entries
                    .map(|entry| Item {
                        relative: entry.relative.clone(),
                        source: path.join(&entry.relative),
                        sha256: entry.file.sha256,
                        access: entry.access,
                    })
                    .collect()
            },
            read,
        )
    }

    fn for_each_stage(
        &self,
        items: impl Fn(usize) -> Vec<Item>,
        read: &Generation,
    ) -> Result<Vec<Job>, Refusal> {
        let jobs = self.settings.stage.iter().map(|stage| {
            let dir = self.settings.dir_of(&stage.source).ok_or_else(|| {
                let source = stage.source.display();
                let message = format!("--stage {source}: that is not a --config directory");
                Refusal::new(Code::StageFailed, message)
            })?;
            let live = read.entries.iter().filter(|entry| entry.dir == dir && entry.live);
            let link = |entry: &Entry| Link {
                relative: entry.relative.clone(),
                source: stage.source.join(&entry.relative),
            };
            Ok(Job {
                target: stage.target.clone(),
                items: items(dir),
                links: live.map(link).collect(),
            })
        });
        jobs.collect()
    }

    /// What to keep if the engine becomes ready with this.
    fn staged(&self, read: &Generation, jobs: Vec<Job>) -> Option<Staged> {
        let checksum = read.checksum.clone()?;
        if self.settings.keep_last_good.is_none() || !self.settings.all_staged() {
            return None;
        }
        let candidates = self.settings.stage.iter().zip(jobs).flat_map(|(stage, job)| {
            let dir = self.settings.dir_of(&stage.source);
            let name = dir.and_then(|dir| self.settings.dirs[dir].name.clone());
            job.items.into_iter().map(move |item| Candidate {
                dir: name.clone(),
                // The copy is used first, because the mount may have changed. The mount is used if
                // the engine's entrypoint edited the copy.
                sources: vec![job.target.join(&item.relative), item.source],
                relative: item.relative,
                sha256: item.sha256,
                access: item.access,
            })
        });
        Some(Staged { checksum, candidates: candidates.collect() })
    }

    fn prepare_last_good(
        &self,
        work: &mut Work,
        expected: Option<&Checksum>,
    ) -> Result<Prepared, Refusal> {
        let none = |message: String| Refusal::new(Code::NoLastGood, message);
        let root = self.settings.keep_last_good.as_ref().filter(|_| self.settings.all_staged());
        let root = root.ok_or_else(|| {
            none(
                "no config is kept as last good: that needs --keep-last-good and --stage for every \
                 --config directory"
                    .to_owned(),
            )
        })?;
        let kept = LastGood::load(root).map_err(|error| none(error.to_string()))?;
        let kept = kept.ok_or_else(|| {
            none("no config was ever ready here, so none is kept as last good".to_owned())
        })?;
        let checksum = kept.checksum.clone();
        if let Some(expected) = expected.filter(|expected| **expected != checksum) {
            return Err(Refusal::new(
                Code::ChecksumMismatch,
                format!("the last good config is {checksum}, not {expected}"),
            ));
        }
        if let Some((name, _)) = kept
            .files()
            .iter()
            .find(|(name, _)| !self.settings.dirs.iter().any(|dir| dir.name == *name))
        {
            let name = name.as_deref().unwrap_or("without a name");
            return Err(none(format!(
                "the last good config was kept from a --config directory {name}, which is not set"
            )));
        }
        // Live files are linked to the mount, whichever config is used; a mount that cannot be read
        // has none.
        let (read, generation) = self.observe(work);
        let jobs = self.for_each_stage(
            |dir| {
                let name = &self.settings.dirs[dir].name;
                let items = kept.files().iter().filter(|(kept, _)| kept == name);
                items.map(|(_, item)| item.clone()).collect()
            },
            &read,
        )?;
        match stage::stage(&jobs) {
            Ok(()) => Ok(Prepared {
                checksum: Some(checksum),
                choice: ConfigChoice::LastGood,
                generation,
                staged: true,
                fingerprint: Fingerprint::default(),
            }),
            Err(error @ stage::Error::Source { .. }) => Err(none(format!(
                "the last good config is damaged: {error}; a new one is kept when the engine is \
                 next ready"
            ))),
            Err(error @ stage::Error::Target { .. }) => {
                Err(Refusal::new(Code::StageFailed, error.to_string()))
            }
        }
    }

    /// Keeps what was last staged from the mounts, and publishes it.
    pub(super) fn keep_last_good(&self) -> Result<Option<Checksum>, LastGoodError> {
        let mut work = self.work();
        let Some(root) = &self.settings.keep_last_good else { return Ok(None) };
        let Some(staged) = &work.staged else { return Ok(None) };
        let checksum = staged.checksum.clone();
        let kept = last_good::keep(root, staged);
        if kept.is_ok() {
            work.last_good = Some(checksum.clone());
        }
        work.last_good_problem = kept.as_ref().err().map(ToString::to_string);
        self.publish(&work);
        kept.map(|()| Some(checksum))
    }

    /// Reads the record that an earlier manager kept.
    pub(super) fn find_last_good(&self, work: &mut Work) {
        let Some(root) = &self.settings.keep_last_good else { return };
        match LastGood::load(root) {
            Ok(kept) => work.last_good = kept.map(|kept| kept.checksum),
            Err(error) => work.last_good_problem = Some(error.to_string()),
        }
    }
}

/// The mounted files with their digests, for the message of a refusal.
fn named_files(read: &Generation) -> String {
    const MOST: usize = 20;
    let mut text = String::new();
    let counted = || read.entries.iter().filter(|entry| !entry.live);
    for entry in counted().take(MOST) {
        let separator = if text.is_empty() { "" } else { ", " };
        let digest = entry.file.sha256.to_string();
        // Writing to a String cannot fail.
        let _ = write!(text, "{separator}{} ({}…)", lossy(&entry.file.path), &digest[..12]);
    }
    match counted().count().saturating_sub(MOST) {
        0 if text.is_empty() => "no files".to_owned(),
        0 => text,
        more => format!("{text} and {more} more"),
    }
}
