//! Right before a start: read, verify, stage; or find and keep a generation.

use std::fmt::Write as _;
use std::sync::Arc;

use super::generation::{Entry, Fingerprint, Generation, lossy};
use super::kept::{Kept, Staged, StagedFile, Store};
use super::observed::{Shared, Work};
use super::progress::{Access, Hanging, Progress};
use super::stage::{self, Item, Job, Link};
use crate::lifecycle::KeepAs;
use stayput_api::checksum::Checksum;
use stayput_api::{Code, ConfigChoice, ConfigFile, Refusal};

/// How often a generation is read again if it was swapped while it was copied.
const ATTEMPTS: usize = 4;

/// A config that was verified, and staged where that is set.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Checksum of the config that the engine will read, if it is known or was requested.
    pub checksum: Option<Checksum>,
    /// Origin of the config.
    pub choice: ConfigChoice,
    /// The files that the checksum covers, sorted by listed path.
    pub files: Vec<ConfigFile>,
    /// [`Observed::change_count`](super::Observed::change_count) when it was read. Where nothing is
    /// staged, a higher one before the engine is ready means that it may have read a mixture.
    pub change_count: u64,
    /// True if the engine reads only staged copies, so that later changes of the mounts do not reach it.
    pub staged: bool,
    /// The fingerprint of what the engine reads from the mounts.
    pub(super) fingerprint: Fingerprint,
    /// Paths of the staged content, if generations are kept.
    pub(super) to_keep: Option<Arc<Staged>>,
}

impl Prepared {
    /// True if the mounts that the engine will read are still as verified; staged copies cannot
    /// change. Takes a few system calls: to be called right before the engine is executed.
    pub fn is_current(&self) -> bool {
        self.fingerprint.is_current()
    }
}

/// The config to prepare.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) choice: ConfigChoice,
    pub(super) expected: Option<Checksum>,
    /// The kept generation to use instead, if it can be used.
    pub(super) pinned: Option<Checksum>,
}

impl Wanted {
    /// The refusal for a volume that hangs.
    fn refused(&self, hanging: &Hanging) -> Refusal {
        match (&hanging.access, &self.expected) {
            (Access::Read(_), Some(expected)) => Refusal::new(
                Code::ConfigUnknown,
                format!("cannot verify that the mounted config is {expected}: {hanging}"),
            ),
            _ => Refusal::new(Code::StageFailed, hanging.to_string()),
        }
    }
}

/// The volumes that a preparation works on: the mounts with their staging targets, and the kept generations.
pub(super) struct Volumes<'a> {
    pub(super) work: &'a mut Work,
    /// Kept generations; `None` where nothing is kept, or no kept generation is wanted.
    pub(super) store: Option<Result<&'a Store, &'a Hanging>>,
    pub(super) progress: &'a Progress,
}

impl Shared {
    /// Prepares, or refuses as soon as a volume hangs.
    pub(super) async fn prepare(self: &Arc<Self>, wanted: Wanted) -> Result<Prepared, Refusal> {
        // The mounts first: work on them that hangs may hold the store as well, and only they know the path.
        let permit = self.work.permit().await.map_err(|hanging| wanted.refused(&hanging))?;
        let from_store = wanted.choice == ConfigChoice::LastGood || wanted.pinned.is_some();
        let store = match self.store.as_ref().filter(|_| from_store) {
            Some(store) => Some(store.permit().await),
            None => None,
        };
        if let (Some(Err(hanging)), ConfigChoice::LastGood) = (&store, wanted.choice) {
            return Err(wanted.refused(hanging));
        }
        let (shared, asked) = (Arc::clone(self), wanted.clone());
        let mut working = permit.begin(move |work, progress| {
            let store = store.as_ref().map(|store| store.as_deref());
            let mut volumes = Volumes { work, store, progress };
            match &asked.pinned {
                Some(pinned) => shared.prepare_pinned(&mut volumes, pinned, &asked),
                None => {
                    let prepared = shared.prepare_unpinned(&mut volumes, &asked);
                    shared.published.unpinned(None);
                    prepared
                }
            }
        });
        match working.done_or_hanging().await {
            Ok(done) => done.unwrap_or_else(|error| {
                Err(Refusal::new(Code::ConfigUnknown, format!("the config was not read: {error}")))
            }),
            Err(hanging) => Err(wanted.refused(&hanging)),
        }
    }

    /// Prepares the mounted config or the last good one.
    pub(super) fn prepare_unpinned(
        &self,
        volumes: &mut Volumes<'_>,
        wanted: &Wanted,
    ) -> Result<Prepared, Refusal> {
        let expected = wanted.expected.as_ref();
        match wanted.choice {
            ConfigChoice::Mounted => self.prepare_mounted(volumes, expected),
            ConfigChoice::LastGood => self.prepare_last_good(volumes, expected),
        }
    }

    pub(super) fn prepare_mounted(
        &self,
        volumes: &mut Volumes<'_>,
        expected: Option<&Checksum>,
    ) -> Result<Prepared, Refusal> {
        let mut changed = String::new();
        for _ in 0..ATTEMPTS {
            let (read, change_count) = self.observe(volumes.work, volumes.progress);
            self.verify(&read, expected)?;
            let mut to_keep = None;
            if !self.settings.stage.is_empty() {
                let jobs = self.jobs(&read)?;
                match stage::stage(&jobs, volumes.progress) {
                    Ok(()) => to_keep = self.to_keep(read.checksum.as_ref(), jobs),
                    Err(error @ stage::Error::Source(_)) => {
                        changed = error.to_string();
                        continue;
                    }
                    Err(error @ stage::Error::Target(_)) => {
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
                files: read.files().filter(|file| !file.live).collect(),
                change_count,
                staged: self.settings.all_staged(),
                fingerprint: read.fingerprint.below(mounted),
                to_keep,
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
                format!("cannot verify that the mounted config is {expected}: {}", unknown()),
            )),
            (None, None) if !self.settings.stage.is_empty() => Err(Refusal::new(
                Code::StageFailed,
                format!("the config cannot be staged as a whole: {}", unknown()),
            )),
            (Some(_), _) | (None, None) => Ok(()),
        }
    }

    /// Files to copy and to link for this generation.
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

    pub(super) fn for_each_stage(
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

    /// Files to keep of a generation that was just staged.
    pub(super) fn to_keep(
        &self,
        checksum: Option<&Checksum>,
        jobs: Vec<Job>,
    ) -> Option<Arc<Staged>> {
        let checksum = checksum.filter(|_| self.store.is_some())?.clone();
        let files = self.settings.stage.iter().zip(jobs).flat_map(|(stage, job)| {
            let dir = self.settings.dir_of(&stage.source);
            let name = dir.and_then(|dir| self.settings.dirs[dir].name.clone());
            job.items.into_iter().map(move |item| StagedFile {
                dir: name.clone(),
                // The copy is used first, because the mount may have changed. The mount is used if
                // the engine's entrypoint edited the copy.
                sources: vec![job.target.join(&item.relative), item.source],
                relative: item.relative,
                sha256: item.sha256,
                access: item.access,
            })
        });
        Some(Arc::new(Staged { checksum, files: files.collect() }))
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

fn unusable(message: String) -> Refusal {
    Refusal::new(Code::NoLastGood, message)
}

impl Shared {
    pub(super) fn prepare_last_good(
        &self,
        volumes: &mut Volumes<'_>,
        expected: Option<&Checksum>,
    ) -> Result<Prepared, Refusal> {
        let store = match volumes.store {
            Some(store) => store.map_err(|hanging| unusable(hanging.to_string()))?,
            None => {
                return Err(unusable(
                    "no config is kept as last good: that needs --keep-last-good and --stage for \
                     every --config directory"
                        .to_owned(),
                ));
            }
        };
        let kept = store.last_good(volumes.progress).map_err(unusable)?;
        let kept = kept.ok_or_else(|| {
            unusable("no config was ever ready here, so none is kept as last good".to_owned())
        })?;
        if let Some(expected) = expected.filter(|expected| **expected != kept.checksum) {
            return Err(Refusal::new(
                Code::ChecksumMismatch,
                format!("the last good config is {}, not {expected}", kept.checksum),
            ));
        }
        self.stage_kept(volumes, &kept, ConfigChoice::LastGood)
    }

    /// Prepares the generation that the engine was last told to run. An engine that comes back by
    /// itself must come back: if that generation cannot be used, the engine gets the config that it
    /// would get without pinning.
    pub(super) fn prepare_pinned(
        &self,
        volumes: &mut Volumes<'_>,
        pinned: &Checksum,
        wanted: &Wanted,
    ) -> Result<Prepared, Refusal> {
        let why = match self.find_pinned(volumes, pinned, wanted.choice) {
            Err(refusal) if refusal.code == Code::NoLastGood => refusal.message,
            prepared => {
                self.published.unpinned(None);
                return prepared;
            }
        };
        let prepared = self.prepare_unpinned(volumes, wanted)?;
        let checksum = prepared.checksum.as_ref();
        let other = checksum.filter(|checksum| *checksum != pinned).map(|checksum| {
            format!(
                "the engine came back on {checksum}, because the last requested config, {pinned}, cannot \
                 be used: {why}"
            )
        });
        if let Some(message) = &other {
            tracing::error!("{message}");
        }
        self.published.unpinned(other);
        Ok(prepared)
    }

    fn find_pinned(
        &self,
        volumes: &mut Volumes<'_>,
        pinned: &Checksum,
        choice: ConfigChoice,
    ) -> Result<Prepared, Refusal> {
        if choice == ConfigChoice::Mounted {
            // Usually it is still mounted.
            match self.prepare_mounted(volumes, Some(pinned)) {
                Err(refusal)
                    if matches!(refusal.code, Code::ChecksumMismatch | Code::ConfigUnknown) => {}
                prepared => return prepared,
            }
        }
        let store = volumes.store.transpose().map_err(|hanging| unusable(hanging.to_string()))?;
        let kept = store.map(|store| store.find(pinned, volumes.progress)).transpose();
        match kept.map_err(unusable)?.flatten() {
            Some(kept) => self.stage_kept(volumes, &kept, choice),
            None => Err(unusable("it is not kept".to_owned())),
        }
    }

    fn stage_kept(
        &self,
        volumes: &mut Volumes<'_>,
        kept: &Kept,
        choice: ConfigChoice,
    ) -> Result<Prepared, Refusal> {
        if let Some((name, _)) = kept
            .files()
            .iter()
            .find(|(name, _)| !self.settings.dirs.iter().any(|dir| dir.name == *name))
        {
            let name = name.as_deref().unwrap_or("without a name");
            return Err(unusable(format!(
                "the kept config is that of a --config directory {name}, which is not set"
            )));
        }
        // Live files are linked to the mount, whichever config is used; a mount that cannot be read
        // has none.
        let (read, change_count) = self.observe(volumes.work, volumes.progress);
        let jobs = self.for_each_stage(
            |dir| {
                let name = &self.settings.dirs[dir].name;
                let items = kept.files().iter().filter(|(kept, _)| kept == name);
                items.map(|(_, item)| item.clone()).collect()
            },
            &read,
        )?;
        match stage::stage(&jobs, volumes.progress) {
            Ok(()) => Ok(Prepared {
                checksum: Some(kept.checksum.clone()),
                choice,
                files: kept.listed(),
                change_count,
                staged: true,
                fingerprint: Fingerprint::default(),
                to_keep: self.to_keep(Some(&kept.checksum), jobs),
            }),
            Err(error @ stage::Error::Source(_)) => Err(unusable(format!(
                "the kept config is damaged: {error}; a new one is kept when the engine is next \
                 ready"
            ))),
            Err(error @ stage::Error::Target(_)) => {
                Err(Refusal::new(Code::StageFailed, error.to_string()))
            }
        }
    }
}

// Keeps generations, and finds kept ones.

impl Shared {
    /// Keeps a prepared generation, and publishes the last good checksum.
    pub(super) async fn keep(
        self: &Arc<Self>,
        prepared: &Prepared,
        role: KeepAs,
    ) -> Result<(), String> {
        let (Some(store), Some(staged)) = (&self.store, prepared.to_keep.clone()) else {
            return Ok(());
        };
        let permit = store.permit_after_all().await;
        let keeping = permit.begin(move |store, progress| {
            let kept = store.keep(&staged, role, progress);
            (kept, store.last_good(progress))
        });
        let kept = keeping.done().await;
        let (kept, last_good) =
            kept.map_err(|panicked| format!("the config was not kept: {panicked}"))?;
        if let Ok(last_good) = last_good {
            self.published.last_good(last_good.map(|kept| kept.checksum));
        }
        self.published.kept_problem(kept.as_ref().err().cloned());
        kept
    }

    /// Finds the last good generation that an earlier manager kept.
    pub(super) async fn find_last_good(self: Arc<Self>) {
        let Some(store) = &self.store else { return };
        let permit = store.permit_after_all().await;
        match permit.begin(|store, progress| store.last_good(progress)).done().await {
            Ok(Ok(kept)) => self.published.last_good(kept.map(|kept| kept.checksum)),
            Ok(Err(problem)) => self.published.kept_problem(Some(problem)),
            // The panic is reported.
            Err(_) => {}
        }
    }
}
