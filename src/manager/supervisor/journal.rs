//! The data that must survive the container: one small JSON file in the state directory.
//!
//! After a crash there is the old version or the new one, never a mixture.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::state_dir;
use crate::files;
use crate::lifecycle::{Intent, LAST_INSTANT, Recovered};
use crate::worker::Worker;
use stayput_api::{Exit, MAX_SEQUENCE, Run};

/// Version of the file's layout. With a newer one, the engine is held.
const SCHEMA: u32 = 1;
/// Real journals are a few kilobytes; a larger file is not ours.
const MAX_BYTES: u64 = 1 << 20;

/// The journal's place on disk.
#[derive(Debug, Clone)]
pub struct Journal {
    dir: PathBuf,
}

/// The whole content of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) schema: u32,
    pub(super) boot_id: String,
    /// Uid of the pod that wrote the journal: another pod's intent is not ours.
    pub(super) pod: Option<String>,
    pub(super) intent: Intent,
    pub(super) run: Option<Run>,
    pub(super) last_exit: Option<Exit>,
}

impl Record {
    pub(super) fn new(
        boot_id: String,
        pod: Option<String>,
        intent: Intent,
        run: Option<Run>,
        last_exit: Option<Exit>,
    ) -> Self {
        Self { schema: SCHEMA, boot_id, pod, intent, run, last_exit }
    }
}

impl Journal {
    /// The journal inside the state directory `dir`.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    fn path(&self) -> PathBuf {
        self.dir.join("journal.json")
    }

    /// Checks that the state directory is a directory, and as root takes the right to write there from
    /// all others. Returns whether there is a journal, or may be one: an error that is not a mistake in
    /// the settings is left to [`Self::recover`]. Blocks.
    ///
    /// # Errors
    /// The fault of the directory, with the remedy.
    pub fn check(&self) -> Result<bool, String> {
        let path = &self.dir;
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {
                state_dir::close_to_others(path)?;
                Ok(!fs::symlink_metadata(self.path()).is_err_and(|error| is_missing(&error)))
            }
            Ok(_) => {
                let path = path.display();
                Err(format!("--state-dir {path} is not a directory: mount an emptyDir there"))
            }
            Err(error) if is_missing(&error) => Err(state_dir::unusable(path, &error)),
            Err(_) => Ok(true),
        }
    }

    /// Reads the record of an earlier boot. Blocks.
    pub fn recover(&self, pod: Option<&str>) -> Recovered {
        match self.read(pod) {
            Ok(None) => Recovered::Fresh,
            Ok(Some(record)) => Recovered::Journal {
                intent: Box::new(record.intent),
                last_exit: record.last_exit,
                run: record.run.map(Box::new),
            },
            Err(error) => Recovered::Unreadable(format!(
                "{error}; so it is not known whether the engine should run: start or stop it (the \
                 file is then kept as journal.json.unreadable)"
            )),
        }
    }

    fn read(&self, pod: Option<&str>) -> Result<Option<Record>, String> {
        let path = self.path();
        let shown = path.display();
        let bytes = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(meta) if !meta.is_file() => return Err(format!("{shown} is not a file")),
            Ok(meta) if meta.len() > MAX_BYTES => {
                return Err(format!("{shown} is larger than {MAX_BYTES} bytes: not a journal"));
            }
            Ok(_) => fs::read(&path),
            Err(error) => Err(error),
        };
        let bytes = bytes.map_err(|error| format!("cannot read {shown}: {error}"))?;
        parse(&bytes, pod).map(Some).map_err(|fault| format!("{shown} {fault}"))
    }

    /// Writes the record so that it survives a crash. Blocks until the disk has it.
    ///
    /// # Errors
    /// The system's error, with the file it is about.
    pub(super) fn write(&self, record: &Record) -> Result<(), String> {
        self.write_then(record, || Ok(()))
    }

    /// Like [`Self::write`], but keeps the unreadable journal under another name, once a request
    /// has decided the intent. The unreadable file stays in its place until the record is there:
    /// without a journal, the next container would start the engine.
    ///
    /// # Errors
    /// The errors of [`Self::write`].
    pub(super) fn replace_unreadable(&self, record: &Record) -> Result<(), String> {
        self.write_then(record, || self.keep_unreadable())
    }

    /// `prepare` is called when the record is on the disk, and not in its place yet.
    fn write_then(
        &self,
        record: &Record,
        prepare: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), String> {
        let path = self.path();
        // The journal contains names of users, which are private.
        let written = serde_json::to_vec(record)
            .map_err(io::Error::from)
            .and_then(|content| files::replace_file(&path, &content, prepare));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    fn keep_unreadable(&self) -> io::Result<()> {
        let (path, kept) = (self.path(), self.dir.join("journal.json.unreadable"));
        files::remove(&kept)?;
        match fs::hard_link(&path, &kept) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            // A directory, or a file system without links.
            Err(_) => fs::rename(&path, &kept),
            Ok(()) => Ok(()),
        }
    }
}

/// Reads the content of a journal. The message of a fault continues after the journal's path.
fn parse(bytes: &[u8], pod: Option<&str>) -> Result<Record, String> {
    #[derive(Deserialize)]
    struct Head {
        schema: u32,
    }
    if bytes.is_empty() {
        return Err("is empty".to_owned());
    }
    let Head { schema } = serde_json::from_slice(bytes)
        .map_err(|error| format!("is torn, or no journal of stayput ({error})"))?;
    if schema != SCHEMA {
        return Err(format!(
            "has schema {schema}, this version of stayput knows {SCHEMA}: it was written by another \
             one"
        ));
    }
    let record: Record = serde_json::from_slice(bytes)
        .map_err(|error| format!("is not a whole journal ({error})"))?;
    let fencing = &record.intent.fencing;
    if fencing.sequence > MAX_SEQUENCE {
        return Err(format!("has sequence {}, which no manager accepts", fencing.sequence));
    }
    let instants = [
        fencing.last.as_ref().map(|last| last.at),
        record.intent.asked.as_ref().map(|asked| asked.at),
        record.intent.resume.as_ref().map(|resume| resume.at),
    ];
    if instants.into_iter().flatten().any(|at| at > LAST_INSTANT) {
        return Err("has a time after the year 9999".to_owned());
    }
    match (&record.pod, pod) {
        (Some(theirs), Some(ours)) if theirs != ours => Err(format!(
            "was written by pod {theirs}, this is pod {ours}: the state directory must not outlive \
             its pod (use an emptyDir)"
        )),
        (Some(_) | None, Some(_) | None) => Ok(record),
    }
}

// Writes journal versions one after the other, outside of the supervisor's loop.
//
// Only the newest version waits: it contains all that the earlier ones do. A disk that hangs
// blocks one thread and nothing else; the lifecycle has a timer for how long a request waits for
// it.

/// The result of writing a version.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) version: u64,
    pub(super) result: Result<(), String>,
}

type Writing = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

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
        self.writing = Some((
            version,
            Box::pin(async {
                work.await.unwrap_or_else(|panicked| {
                    Err(format!("the journal was not written: {panicked}"))
                })
            }),
        ));
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

#[cfg(test)]
mod tests;
