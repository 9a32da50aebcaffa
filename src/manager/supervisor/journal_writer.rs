//! Writes journal versions one after the other, outside of the supervisor's loop.
//!
//! Only the newest version waits: it contains all that the earlier ones do. A disk that hangs
//! blocks one thread and nothing else; the lifecycle has a timer for how long a request waits for
//! it.

use std::collections::VecDeque;

use tokio::sync::{mpsc, watch};

use super::journal::{Journal, JournalError, Record};

/// A version and its content.
type Version = (u64, Record);

/// The result of writing a version.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) version: u64,
    pub(super) result: Result<(), JournalError>,
}

/// The supervisor's side of the writer.
#[derive(Debug)]
pub(super) struct JournalWriter {
    newest: watch::Sender<Option<Version>>,
    results: mpsc::UnboundedReceiver<Written>,
    pending: VecDeque<u64>,
}

impl JournalWriter {
    /// Starts the writing task. `set_aside`: move the unreadable file away before the first write.
    pub(super) fn spawn(journal: Journal, set_aside: bool) -> Self {
        let (newest, versions) = watch::channel(None);
        let (sender, results) = mpsc::unbounded_channel();
        tokio::spawn(write_all(journal, set_aside, versions, sender));
        Self { newest, results, pending: VecDeque::new() }
    }

    /// Passes a version to the writer; an older one that waits is dropped.
    pub(super) fn write(&mut self, version: u64, record: Record) {
        self.pending.push_back(version);
        self.newest.send_replace(Some((version, record)));
    }

    /// The next result. Cancel-safe.
    pub(super) async fn written(&mut self) -> Written {
        match self.results.recv().await {
            Some(written) => {
                self.pending.retain(|version| *version > written.version);
                written
            }
            // The task ends only with this struct.
            None => std::future::pending().await,
        }
    }

    /// Whether a version that was passed in is not on disk yet.
    pub(super) fn is_busy(&self) -> bool {
        !self.pending.is_empty()
    }
}

async fn write_all(
    journal: Journal,
    mut set_aside: bool,
    mut versions: watch::Receiver<Option<Version>>,
    results: mpsc::UnboundedSender<Written>,
) {
    while versions.changed().await.is_ok() {
        let Some((version, record)) = versions.borrow_and_update().clone() else { continue };
        let journal = journal.clone();
        let work = tokio::task::spawn_blocking(move || {
            if set_aside {
                journal.set_aside()?;
            }
            journal.write(&record)
        });
        let result = work.await.unwrap_or_else(|error| Err(error.into()));
        // The file that exists now is ours.
        set_aside &= result.is_err();
        if results.send(Written { version, result }).is_err() {
            return;
        }
    }
}
