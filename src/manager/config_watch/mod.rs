//! The mounted config: its checksum, its changes, staging, the last good generation.
//!
//! [`ConfigWatch`] reads the config directories, publishes what it finds, and sleeps until one of
//! them changes. Right before a start, [`ConfigWatch::prepare`] reads them again, compares, and
//! copies what it verified to where the engine reads it (`stage`). Once the engine was ready,
//! [`ConfigWatch::keep_last_good`] keeps that copy.
//!
//! ```text
//! inotify ─► follow ─► observed ─► watch channel
//!                         ▲ ▼
//!                         │ read ─► walk
//!                      prepare ─► stage   last_good
//! ```

mod content;
mod fingerprint;
mod follow;
mod generation;
mod last_good;
mod observed;
mod prepare;
mod read;
mod settings;
mod stage;
mod subpath;
mod walk;
mod watches;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;

pub use last_good::{LastGoodError, RecordError};
pub use observed::Observed;
pub use prepare::Prepared;
pub use settings::{ConfigDir, ConfigSettings, Stage};

use crate::errors::Errors;
use crate::worker::Worker;
use follow::Follower;
use observed::Shared;
use stayput_api::checksum::Checksum;
use stayput_api::{Code, ConfigChoice, Refusal};

/// A status shows a reading that is at most this much older than the request before it.
const MAX_AGE: Duration = Duration::from_secs(10);

/// Watches the config until it is dropped.
#[derive(Debug)]
pub struct ConfigWatch {
    shared: Arc<Shared>,
    /// Copies; the follower's thread only reads.
    staging: Worker,
    follower: AbortHandle,
}

impl ConfigWatch {
    /// Reads the config for the first time on the thread `reader` and watches it from then on. On
    /// the thread `staging` it is copied. Needs a runtime with I/O and time. What is wrong with the
    /// directories is in [`Observed::errors`]: a manager whose config is missing must still answer.
    /// What cannot be watched is reported to `errors`.
    pub async fn start(
        mut settings: ConfigSettings,
        reader: Worker,
        staging: Worker,
        errors: Errors,
    ) -> Self {
        // Links to live files contain these paths, so they must not depend on the working
        // directory.
        let dirs = settings.dirs.iter_mut().map(|dir| &mut dir.path);
        let staged = settings.stage.iter_mut().flat_map(|one| [&mut one.source, &mut one.target]);
        dirs.chain(staged).chain(&mut settings.keep_last_good).for_each(absolute);
        let shared = Arc::new(Shared::new(settings));
        let finder = Arc::clone(&shared);
        // After a panic none is kept.
        let _ = staging.run(move || finder.find_last_good(&mut finder.work())).await;
        let follower = Follower::start(Arc::clone(&shared), reader, errors).await;
        Self { shared, staging, follower: tokio::spawn(follower.follow()).abort_handle() }
    }

    /// Follows the published state of the config.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Observed>> {
        self.shared.subscribe()
    }

    /// To be called when somebody wants to know the config. Changes are not always told (gVisor, a
    /// network file system, a mount over a directory), so the config is read again unless it was
    /// read a moment ago. Returns at once; what is new is published.
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
    /// Dropping the future does not interrupt a staging that has begun; the next one waits for it.
    ///
    /// # Errors
    /// * [`Code::ChecksumMismatch`]: another config is mounted or kept than expected.
    /// * [`Code::ConfigUnknown`]: one is expected, and the mounted one is not known.
    /// * [`Code::NoLastGood`]: none is kept, or it is damaged.
    /// * [`Code::StageFailed`]: it cannot be copied.
    pub async fn prepare(
        &self,
        choice: ConfigChoice,
        expected: Option<&Checksum>,
    ) -> Result<Prepared, Refusal> {
        let (shared, expected) = (Arc::clone(&self.shared), expected.cloned());
        let prepared = self.staging.run(move || shared.prepare(choice, expected.as_ref())).await;
        prepared.unwrap_or_else(|error| {
            Err(Refusal::new(Code::ConfigUnknown, format!("the config was not read: {error}")))
        })
    }

    /// Whether the engine would still read what was verified. Cheap and synchronous: to be called
    /// right before the engine is executed. Always true for what is staged.
    pub fn still_current(&self, prepared: &Prepared) -> bool {
        prepared.still_current()
    }

    /// Keeps the generation that was last staged as the last good one; to be called when the engine
    /// has become ready with it. Returns none if there is nothing to keep: keeping is not
    /// configured, or the engine runs on the last good config already.
    ///
    /// # Errors
    /// Why it is not kept; also in [`Observed::errors`] until a generation is kept. The one before
    /// it stays.
    pub async fn keep_last_good(&self) -> Result<Option<Checksum>, LastGoodError> {
        let shared = Arc::clone(&self.shared);
        self.staging.run(move || shared.keep_last_good()).await?
    }

    /// The checksum of directories, read once: what `stayput checksum` shows.
    ///
    /// Blocks.
    ///
    /// # Errors
    /// Why there is no checksum; one message per problem.
    pub fn read_once(settings: &ConfigSettings) -> Result<Observed, Vec<String>> {
        let shared = Shared::new(settings.clone());
        let (read, _) = shared.observe(&mut shared.work());
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
