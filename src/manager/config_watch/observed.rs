//! The known state of the mounted config, and how it is published.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tokio::sync::{Notify, watch};

use super::fingerprint::Mount;
use super::generation::{Entry, Generation};
use super::kept::Store;
use super::progress::Progress;
use super::read::read;
use super::settings::ConfigSettings;
use super::subpath;
use super::work_permit::Exclusive;
use crate::worker::Worker;
use stayput_api::ConfigFile;
use stayput_api::checksum::Checksum;

/// The largest number of messages in [`Observed::errors`]: more do not help.
const MOST_ERRORS: usize = 16;

/// The mounted config as it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Checksum of the files that are not live; `None` without directories, or where they cannot be
    /// read as one generation.
    pub checksum: Option<Checksum>,
    /// Every file that could be read, sorted by listed path.
    pub files: Vec<ConfigFile>,
    /// Problems and what to do, one message each.
    pub errors: Vec<String>,
    /// Checksum of the kept generation.
    pub last_good: Option<Checksum>,
    /// When the mounts were last read. If nothing else is new, no receiver wakes up.
    pub observed_at: SystemTime,
    /// Increases when files that are not live changed, or when a volume with such files was
    /// swapped, even to the same content: between two readings there may have been another one.
    pub change_count: u64,
}

/// State that a reading leaves for the next one.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Volumes with files that are not live.
    mounts: Vec<Mount>,
    /// Problems that the last reading found.
    problems: Vec<String>,
}

/// Known checksum and faults, by where they were found. Locked for moments only.
#[derive(Debug, Default)]
struct Known {
    /// Checksum as last read; not published while the reading cannot be repeated.
    checksum: Option<Checksum>,
    mounts: Vec<String>,
    kept: Option<String>,
    unpinned: Option<String>,
    /// Message while the volume of the config, or of a staging target, does not answer.
    hanging: Option<String>,
    /// Message while the volume of the kept generations does not answer.
    kept_hanging: Option<String>,
}

impl Known {
    fn errors(&self) -> Vec<String> {
        let hanging = self.hanging.iter().chain(&self.kept_hanging);
        let found = self.mounts.iter();
        let kept = self.kept.iter().chain(&self.unpinned);
        let mut errors: Vec<String> = hanging.chain(found).chain(kept).cloned().collect();
        if let Some(more) = errors.len().checked_sub(MOST_ERRORS).filter(|more| *more > 0) {
            errors.truncate(MOST_ERRORS);
            errors.push(format!("and {more} more"));
        }
        errors
    }
}

/// State that receivers see.
#[derive(Debug)]
pub(super) struct Published {
    sender: watch::Sender<Arc<Observed>>,
    known: Mutex<Known>,
}

impl Published {
    fn new() -> Self {
        let observed = Observed {
            checksum: None,
            files: Vec::new(),
            errors: Vec::new(),
            last_good: None,
            observed_at: SystemTime::UNIX_EPOCH,
            change_count: 0,
        };
        Self { sender: watch::Sender::new(Arc::new(observed)), known: Mutex::default() }
    }

    /// Changes what is known. Receivers wake up if more than the time of a reading is new.
    fn change(&self, change: impl FnOnce(&mut Known, &mut Observed)) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        self.sender.send_if_modified(|shared| {
            let before = Arc::clone(shared);
            let observed = Arc::make_mut(shared);
            change(&mut known, observed);
            observed.checksum = known.checksum.clone().filter(|_| known.hanging.is_none());
            observed.errors = known.errors();
            let time = Observed { observed_at: observed.observed_at, ..Observed::clone(&before) };
            time != *observed
        });
    }

    pub(super) fn last_good(&self, checksum: Option<Checksum>) {
        self.change(|_, observed| observed.last_good = checksum);
    }

    /// Sets the reason why the last generation was not kept, or clears it.
    pub(super) fn kept_problem(&self, problem: Option<String>) {
        self.change(|known, _| known.kept = problem);
    }

    /// Sets the reason why the engine came back on another generation than it was told to run, or clears it.
    pub(super) fn unpinned(&self, problem: Option<String>) {
        self.change(|known, _| known.unpinned = problem);
    }
}

/// State that the handle shares with its task.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: ConfigSettings,
    pub(super) published: Arc<Published>,
    /// Reading and staging: an earlier reading must not be published later, and two stagings must
    /// not mix.
    pub(super) work: Exclusive<Work>,
    /// Kept generations; `None` where nothing is kept.
    pub(super) store: Option<Exclusive<Store>>,
    /// Wakes the task to read the directories again.
    pub(super) asked: Notify,
}

impl Shared {
    /// State before the first reading.
    pub(super) fn new(settings: ConfigSettings, worker: Worker, keeper: Worker) -> Self {
        let published = Arc::new(Published::new());
        let shown = Arc::clone(&published);
        let hanging = Progress::new(move |message| {
            shown.change(|known, _| known.hanging = message);
        });
        let root = settings.keep_last_good.as_deref().filter(|_| settings.all_staged());
        let store = root.map(|root| {
            let shown = Arc::clone(&published);
            let hanging = Progress::new(move |message| {
                shown.change(|known, _| known.kept_hanging = message);
            });
            Exclusive::new(Store::new(root), hanging, keeper)
        });
        let work = Exclusive::new(Work::default(), hanging, worker);
        Self { settings, published, work, store, asked: Notify::new() }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<Observed>> {
        self.published.sender.subscribe()
    }

    /// Reads the mounts and publishes changes. Also returns [`Observed::change_count`]. Takes as
    /// long as the file system takes.
    pub(super) fn observe(&self, work: &mut Work, progress: &Progress) -> (Generation, u64) {
        let read = read(&self.settings, progress);
        work.problems = read.messages();
        work.problems.extend(self.subpaths());
        let files: Vec<ConfigFile> = read.files().collect();
        let mounts = counted_mounts(&read, &self.settings);
        let mut change_count = 0;
        self.published.change(|known, observed| {
            let swapped = work.mounts != mounts
                || known.checksum != read.checksum
                || !counted(&observed.files).eq(counted(&files));
            known.checksum.clone_from(&read.checksum);
            known.mounts.clone_from(&work.problems);
            observed.observed_at = SystemTime::now();
            observed.change_count += u64::from(swapped);
            observed.files = files;
            change_count = observed.change_count;
        });
        work.mounts = mounts;
        (read, change_count)
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
