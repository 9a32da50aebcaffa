//! What is known about the mounted config, and how it is published.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::sync::{Notify, watch};

use super::fingerprint::Mount;
use super::generation::{Entry, Generation, lossy};
use super::last_good::Staged;
use super::read::read;
use super::settings::ConfigSettings;
use super::subpath;
use stayput_api::ConfigFile;
use stayput_api::checksum::Checksum;

/// The largest number of messages in [`Observed::errors`]: more do not help.
const MOST_ERRORS: usize = 16;

/// The mounted config as it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Checksum of the files that are not live; none without directories, or where they cannot be
    /// read as one generation.
    pub checksum: Option<Checksum>,
    /// Every file that could be read, sorted by listed path.
    pub files: Vec<ConfigFile>,
    /// What is wrong and what to do; one message per problem.
    pub errors: Vec<String>,
    /// Checksum of the kept generation.
    pub last_good: Option<Checksum>,
    /// When the mounts were last read. If nothing else is new, no receiver wakes up.
    pub observed_at: SystemTime,
    /// Increases when files that are not live changed, or when a volume with such files was
    /// swapped, even to the same content: between two readings there may have been another one.
    pub generation: u64,
}

/// What a reading leaves for the next one. Only blocking threads lock it.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Volumes with files that are not live.
    mounts: Vec<Mount>,
    /// What the last reading found wrong.
    problems: Vec<String>,
    pub(super) last_good: Option<Checksum>,
    pub(super) last_good_problem: Option<String>,
    /// What the engine was last started with, while that is staged.
    pub(super) staged: Option<Staged>,
}

/// Shared by the handle and its task.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: ConfigSettings,
    sender: watch::Sender<Arc<Observed>>,
    work: Mutex<Work>,
    /// The directories shall be read again.
    pub(super) asked: Notify,
}

impl Shared {
    /// Nothing read yet.
    pub(super) fn new(settings: ConfigSettings) -> Self {
        let observed = Observed {
            checksum: None,
            files: Vec::new(),
            errors: Vec::new(),
            last_good: None,
            observed_at: SystemTime::UNIX_EPOCH,
            generation: 0,
        };
        let sender = watch::Sender::new(Arc::new(observed));
        Self { settings, sender, work: Mutex::default(), asked: Notify::new() }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<Observed>> {
        self.sender.subscribe()
    }

    /// One at a time: an earlier reading must not be published later, and two stagings must not
    /// mix. Held for as long as the file system takes.
    pub(super) fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the mounts and publishes what is new. Returns also [`Observed::generation`].
    pub(super) fn observe(&self, work: &mut Work) -> (Generation, u64) {
        let read = read(&self.settings);
        work.problems = read.messages();
        work.problems.extend(self.subpaths());
        let files = files(&read);
        let mounts = counted_mounts(&read, &self.settings);
        let errors = errors(work);
        let mut generation = 0;
        self.sender.send_if_modified(|shared| {
            let swapped = work.mounts != mounts
                || shared.checksum != read.checksum
                || !counted(&shared.files).eq(counted(&files));
            let changed = swapped
                || shared.files != files
                || shared.errors != errors
                || shared.last_good != work.last_good;
            let observed = Arc::make_mut(shared);
            observed.observed_at = SystemTime::now();
            observed.generation += u64::from(swapped);
            generation = observed.generation;
            if changed {
                observed.checksum.clone_from(&read.checksum);
                observed.files = files;
                observed.errors = errors;
                observed.last_good.clone_from(&work.last_good);
            }
            changed
        });
        work.mounts = mounts;
        (read, generation)
    }

    /// Publishes what is new except the mounts' content.
    pub(super) fn publish(&self, work: &Work) {
        let errors = errors(work);
        self.sender.send_if_modified(|shared| {
            if shared.errors == errors && shared.last_good == work.last_good {
                return false;
            }
            let observed = Arc::make_mut(shared);
            observed.errors = errors;
            observed.last_good.clone_from(&work.last_good);
            true
        });
    }

    fn subpaths(&self) -> Vec<String> {
        if self.settings.dirs.is_empty() {
            return Vec::new();
        }
        // Without /proc the manager has larger problems than this check.
        let Ok(mountinfo) = std::fs::read("/proc/self/mountinfo") else { return Vec::new() };
        let dirs = self.settings.dirs.iter();
        dirs.filter_map(|dir| dir.path.canonicalize().ok())
            .flat_map(|dir| subpath::messages(&mountinfo, &dir, Path::is_dir))
            .collect()
    }
}

/// The files that the checksum covers.
fn counted(files: &[ConfigFile]) -> impl Iterator<Item = &ConfigFile> {
    files.iter().filter(|file| !file.live)
}

/// The volumes that a swap may bring other files to than live ones: all but those which hold only
/// live files.
fn counted_mounts(read: &Generation, settings: &ConfigSettings) -> Vec<Mount> {
    let only_live = |mount: &&Mount| {
        let path = |entry: &Entry| settings.dirs[entry.dir].path.join(&entry.relative);
        let mut inside =
            read.entries.iter().filter(|entry| path(entry).starts_with(&mount.path)).peekable();
        inside.peek().is_some() && inside.all(|entry| entry.live)
    };
    read.fingerprint.mounts.iter().filter(|mount| !only_live(mount)).cloned().collect()
}

fn files(read: &Generation) -> Vec<ConfigFile> {
    read.entries
        .iter()
        .map(|entry| ConfigFile {
            path: lossy(&entry.file.path),
            sha256: entry.file.sha256.to_string(),
            live: entry.live,
        })
        .collect()
}

fn errors(work: &Work) -> Vec<String> {
    let all = work.problems.iter().chain(&work.last_good_problem);
    let mut errors: Vec<String> = all.cloned().collect();
    if let Some(more) = errors.len().checked_sub(MOST_ERRORS).filter(|more| *more > 0) {
        errors.truncate(MOST_ERRORS);
        errors.push(format!("and {more} more"));
    }
    errors
}
