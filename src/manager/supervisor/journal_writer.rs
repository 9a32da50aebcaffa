//! Writes journal versions one after the other, outside of the supervisor's loop.
//!
//! Only the newest version waits: it contains all that the earlier ones do. A disk that hangs
//! blocks one thread and nothing else; the lifecycle has a timer for how long a request waits for
//! it.

use std::future::pending;
use std::pin::Pin;

use super::journal::{Journal, JournalError, Record};
use crate::worker::Worker;

/// The result of writing a version.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) version: u64,
    pub(super) result: Result<(), JournalError>,
}

type Writing = Pin<Box<dyn Future<Output = Result<(), JournalError>> + Send>>;

/// Writes the journal on its thread.
pub(super) struct JournalWriter {
    journal: Journal,
    worker: Worker,
    /// True if the existing file is unreadable, and is to be kept.
    is_unreadable: bool,
    writing: Option<(u64, Writing)>,
    waiting: Option<(u64, Record)>,
}

impl JournalWriter {
    /// `is_unreadable`: the existing file is unreadable, and is to be kept.
    pub(super) fn new(journal: Journal, worker: Worker, is_unreadable: bool) -> Self {
        Self { journal, worker, is_unreadable, writing: None, waiting: None }
    }

    /// Notes that the existing file was read after all.
    pub(super) fn is_readable(&mut self) {
        self.is_unreadable = false;
    }

    /// Writes a version; an older one that waits is dropped.
    pub(super) fn write(&mut self, version: u64, record: Record) {
        if self.writing.is_some() {
            self.waiting = Some((version, record));
        } else {
            self.begin(version, record);
        }
    }

    fn begin(&mut self, version: u64, record: Record) {
        let (journal, is_unreadable) = (self.journal.clone(), self.is_unreadable);
        let work = self.worker.run(move || {
            if is_unreadable { journal.replace_unreadable(&record) } else { journal.write(&record) }
        });
        self.writing = Some((version, Box::pin(async { work.await? })));
    }

    /// The next result. Cancel-safe.
    pub(super) async fn written(&mut self) -> Written {
        let Some((version, writing)) = &mut self.writing else { return pending().await };
        let written = Written { version: *version, result: writing.await };
        self.writing = None;
        // The file that exists now is ours.
        self.is_unreadable &= written.result.is_err();
        if let Some((version, record)) = self.waiting.take() {
            self.begin(version, record);
        }
        written
    }

    /// True if a version that was passed in is not on disk yet.
    pub(super) fn is_busy(&self) -> bool {
        self.writing.is_some()
    }
}
