//! The mounted config: its checksum, its changes, staging, the last good generation.
//!
//! [`ConfigWatch`] reads the config directories, publishes what it finds, and sleeps until one of
//! them changes. Right before a start, [`ConfigWatch::prepare`] reads them again, compares, and
//! copies what it verified to where the engine reads it (`stage`). Copies that may be needed again
//! are `kept`.
//!
//! ```text
//! inotify ─► follow ─► observed ─► watch channel
//!                         ▲ ▼
//!                         │ read ─► walk
//!                      prepare ─► stage ─► kept
//! ```

mod follow;
mod generation;
mod kept;
mod observed;
mod prepare;
mod progress;
mod stage;
mod walk;
mod watches;
mod work_permit;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use glob::{MatchOptions, Pattern};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::errors::Errors;
use crate::lifecycle::KeepAs;
use crate::worker::Worker;
use follow::Follower;
use observed::{Shared, Work};
use prepare::Wanted;
use progress::Progress;
use stayput_api::checksum::Checksum;
use stayput_api::{ConfigChoice, Refusal};

pub use observed::Observed;
pub use prepare::Prepared;

/// How long the manager's start waits for the kept generations.
const STATE_DIR_TIMEOUT: Duration = Duration::from_secs(5);

/// A status shows a reading that is at most this much older than the request before it.
const MAX_AGE: Duration = Duration::from_secs(10);

/// Watches the config until it is dropped.
#[derive(Debug)]
pub struct ConfigWatch {
    shared: Arc<Shared>,
    follower: AbortHandle,
}

impl ConfigWatch {
    /// Reads the config for the first time and watches it from then on. The thread `worker` reads
    /// and stages it, `keeper` keeps generations. Needs a runtime with I/O and time. Problems with
    /// the directories are in [`Observed::errors`]: a manager whose config is missing must still
    /// answer. Directories that cannot be watched are reported to `errors`.
    pub async fn start(
        mut settings: ConfigSettings,
        worker: Worker,
        keeper: Worker,
        errors: Errors,
    ) -> Self {
        // Links to live files contain these paths, so they must not depend on the working
        // directory.
        let dirs = settings.dirs.iter_mut().map(|dir| &mut dir.path);
        let staged = settings.stage.iter_mut().flat_map(|one| [&mut one.source, &mut one.target]);
        dirs.chain(staged).chain(&mut settings.keep_last_good).for_each(absolute);
        let shared = Arc::new(Shared::new(settings, worker, keeper));
        let finding = tokio::spawn(Arc::clone(&shared).find_last_good());
        // Without it the manager can do everything else.
        let _ = timeout(STATE_DIR_TIMEOUT, finding).await;
        let follower = Follower::start(Arc::clone(&shared), errors).await;
        // What is staged is refused with the same words at the start of the engine.
        if !shared.settings.all_staged() {
            for error in &shared.subscribe().borrow().errors {
                tracing::warn!("{error}");
            }
        }
        Self { shared, follower: tokio::spawn(follower.follow()).abort_handle() }
    }

    /// Follows the published state of the config.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Observed>> {
        self.shared.subscribe()
    }

    /// Reads the config again unless it was read a moment ago: changes are not always reported
    /// (gVisor, a network file system, a mount over a directory). To be called when somebody asks
    /// for the config. Returns at once; changes are published.
    pub fn refresh(&self) {
        let read = self.shared.subscribe().borrow().observed_at;
        // An error: the clock was set back.
        if read.elapsed().is_ok_and(|age| age <= MAX_AGE) {
            return;
        }
        self.shared.asked.notify_one();
    }

    /// Reads the config anew, compares it with what the caller expects, and stages it. To be called
    /// while the engine is down. What it reads is published as well.
    ///
    /// Dropping the future does not interrupt a staging that has begun; the next one waits for it,
    /// or is refused if it hangs.
    ///
    /// # Errors
    /// * [`Code::ChecksumMismatch`](stayput_api::Code::ChecksumMismatch): another config is mounted or kept than expected.
    /// * [`Code::ConfigUnknown`](stayput_api::Code::ConfigUnknown): one is expected, and the mounted one is not known.
    /// * [`Code::NoLastGood`](stayput_api::Code::NoLastGood): none is kept, or it is damaged.
    /// * [`Code::StageFailed`](stayput_api::Code::StageFailed): it cannot be copied, or a volume does not answer.
    pub async fn prepare(
        &self,
        choice: ConfigChoice,
        expected: Option<&Checksum>,
    ) -> Result<Prepared, Refusal> {
        let expected = expected.cloned();
        self.shared.prepare(Wanted { choice, expected, pinned: None }).await
    }

    /// Like [`Self::prepare`], but stages the kept generation with this checksum, if there is one.
    /// If not, that is in [`Observed::errors`], and `choice` is prepared.
    ///
    /// # Errors
    /// The errors of [`Self::prepare`].
    pub async fn prepare_pinned(
        &self,
        pinned: &Checksum,
        choice: ConfigChoice,
    ) -> Result<Prepared, Refusal> {
        let pinned = Some(pinned.clone());
        self.shared.prepare(Wanted { choice, expected: None, pinned }).await
    }

    /// Keeps a generation in this role. Does nothing where keeping is not configured.
    ///
    /// # Errors
    /// The reason why the generation is not kept; also in [`Observed::errors`] until a generation
    /// is kept. Earlier kept generations stay.
    pub async fn keep(&self, prepared: &Prepared, role: KeepAs) -> Result<(), String> {
        self.shared.keep(prepared, role).await
    }

    /// The checksum of directories, read once, as `stayput checksum` shows it.
    ///
    /// Blocks.
    ///
    /// # Errors
    /// Why there is no checksum; one message per problem.
    pub fn read_once(settings: &ConfigSettings) -> Result<Observed, Vec<String>> {
        let worker = Worker::start("config", &Errors::default());
        let worker = worker.map_err(|error| vec![error.to_string()])?;
        let shared = Shared::new(settings.clone(), worker.clone(), worker);
        let (read, _) = shared.observe(&mut Work::default(), &Progress::unseen());
        let observed = Observed::clone(&shared.subscribe().borrow());
        if read.checksum.is_some() { Ok(observed) } else { Err(observed.errors) }
    }
}

impl Drop for ConfigWatch {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

fn absolute(path: &mut PathBuf) {
    // Fails for an empty path, which is then reported as a path that does not exist.
    if let Ok(absolute) = std::path::absolute(Path::new(path)) {
        *path = absolute;
    }
}

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
    fn is_live(&self, listed: &[u8]) -> bool {
        // As in a shell: `*` does not match a slash.
        let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
        let listed = String::from_utf8_lossy(listed);
        self.live.iter().any(|pattern| pattern.matches_with(&listed, options))
    }

    /// True if the engine reads nothing of the config from the mounts.
    pub fn all_staged(&self) -> bool {
        !self.dirs.is_empty() && self.dirs.iter().all(|dir| self.is_staged(&dir.path))
    }

    fn is_staged(&self, path: &Path) -> bool {
        self.stage.iter().any(|stage| stage.source == path)
    }

    /// Index of the config directory at this path.
    fn dir_of(&self, path: &Path) -> Option<usize> {
        self.dirs.iter().position(|dir| dir.path == path)
    }
}

fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}
