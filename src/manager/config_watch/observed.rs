//! What is known of the mounted config, and how it is made known.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::sync::watch;

use super::generation::{Entry, Generation, Mount, lossy};
use super::prepare::Staged;
use super::settings::ConfigSettings;
use super::subpath;
use stayput_api::ConfigFile;
use stayput_api::checksum::Checksum;

/// More sentences than this help nobody.
const MOST_ERRORS: usize = 16;

/// The mounted config as it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Checksum of the files that are not live; none without directories, or where they cannot be
    /// read as one generation.
    pub checksum: Option<Checksum>,
    /// Every file that could be read, sorted by listed path.
    pub files: Vec<ConfigFile>,
    /// What is wrong and what to do, in sentences.
    pub errors: Vec<String>,
    /// Checksum of the kept generation.
    pub last_good: Option<Checksum>,
    /// When the mounts were last read. A reading that found nothing new changes only this and wakes
    /// nobody.
    pub observed_at: SystemTime,
    /// Grows when files that are not live changed, or a volume that holds such was swapped, even to
    /// the same content: between two looks there may have been another.
    pub generation: u64,
}

/// What the readings leave behind for the next one. Only blocking threads lock it.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Volumes with files that are not live.
    mounts: Vec<Mount>,
    /// What the last reading found wrong.
    sentences: Vec<String>,
    /// What cannot be watched.
    pub(super) unwatched: Vec<String>,
    pub(super) last_good: Option<Checksum>,
    pub(super) last_good_problem: Option<String>,
    /// What the engine was last started with, while that is staged.
    pub(super) staged: Option<Staged>,
}

/// Everything the handle and its task share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: ConfigSettings,
    sender: watch::Sender<Arc<Observed>>,
    work: Mutex<Work>,
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
        Self { settings, sender, work: Mutex::default() }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<Observed>> {
        self.sender.subscribe()
    }

    /// One at a time: a reading that began earlier must not be published later, and two stagings
    /// must not mix. Blocks for as long as a file system does.
    pub(super) fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the mounts and makes known what is new; with that, its number.
    pub(super) fn look(&self, work: &mut Work) -> (Generation, u64) {
        let read = Generation::read(&self.settings);
        work.sentences = read.sentences();
        work.sentences.extend(self.subpaths());
        let files = files(&read);
        let mounts = counted_mounts(&read, &self.settings);
        let errors = errors(work);
        let mut number = 0;
        self.sender.send_if_modified(|shared| {
            let moved = work.mounts != mounts
                || shared.checksum != read.checksum
                || !counted(&shared.files).eq(counted(&files));
            let news = moved
                || shared.files != files
                || shared.errors != errors
                || shared.last_good != work.last_good;
            let observed = Arc::make_mut(shared);
            observed.observed_at = SystemTime::now();
            observed.generation += u64::from(moved);
            number = observed.generation;
            if news {
                observed.checksum.clone_from(&read.checksum);
                observed.files = files;
                observed.errors = errors;
                observed.last_good.clone_from(&work.last_good);
            }
            news
        });
        work.mounts = mounts;
        (read, number)
    }

    /// Makes known what is new beside the mounts' content.
    pub(super) fn tell(&self, work: &Work) {
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
        // Without /proc nothing of ours works, and this is the least of it.
        let Ok(mountinfo) = std::fs::read("/proc/self/mountinfo") else { return Vec::new() };
        let dirs = self.settings.dirs.iter();
        dirs.filter_map(|dir| dir.path.canonicalize().ok())
            .flat_map(|dir| subpath::sentences(&mountinfo, &dir, Path::is_dir))
            .collect()
    }
}

/// What the checksum covers.
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
    read.ground.mounts.iter().filter(|mount| !only_live(mount)).cloned().collect()
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
    let all = work.sentences.iter().chain(&work.unwatched).chain(&work.last_good_problem);
    let mut errors: Vec<String> = all.cloned().collect();
    if let Some(more) = errors.len().checked_sub(MOST_ERRORS).filter(|more| *more > 0) {
        errors.truncate(MOST_ERRORS);
        errors.push(format!("and {more} more"));
    }
    errors
}

/// The mounted files in a sentence, for a refusal.
pub(super) fn named_files(read: &Generation) -> String {
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
