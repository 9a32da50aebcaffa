//! The keys in force, read again before they are used if the last reading is old.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::key_files::Keys;

/// A key that was taken away lets callers in no longer than this, also where changes of files are
/// not told. Well below the 30 s that are promised.
const MAX_AGE: Duration = Duration::from_secs(10);

/// The last reading of the files.
#[derive(Debug, Clone, Copy)]
pub(super) enum Check {
    /// The reading is done; the time when it began.
    Began(Instant),
    /// The reading takes long: nobody shall wait for it.
    Hangs,
}

impl Check {
    fn is_old(self) -> bool {
        match self {
            Self::Began(at) => at.elapsed() > MAX_AGE,
            Self::Hangs => false,
        }
    }
}

/// The keys in force.
#[derive(Debug)]
pub(super) struct CheckedKeys {
    keys: watch::Receiver<Arc<Keys>>,
    checks: watch::Receiver<Check>,
    asked: Arc<Notify>,
}

impl CheckedKeys {
    pub(super) fn new(
        keys: watch::Receiver<Arc<Keys>>,
        checks: watch::Receiver<Check>,
        asked: Arc<Notify>,
    ) -> Self {
        Self { keys, checks, asked }
    }

    /// The keys as last read.
    pub(super) fn in_force(&self) -> Arc<Keys> {
        self.keys.borrow().clone()
    }

    /// The keys on disk, to let a caller in; the keys as last read if the disk hangs.
    pub(super) async fn checked(&self) -> Arc<Keys> {
        let is_old = self.checks.borrow().is_old();
        if is_old {
            self.asked.notify_one();
            // Without key files nobody reads, and the sender is gone.
            let _ = self.checks.clone().wait_for(|check| !check.is_old()).await;
        }
        self.in_force()
    }

    /// Follows the keys in force.
    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<Keys>> {
        self.keys.clone()
    }
}
