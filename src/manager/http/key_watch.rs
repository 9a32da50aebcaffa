//! Watches everything that decides where the paths of the key files lead.
//!
//! Watches directories, not files: kubelet replaces a mounted Secret by renaming `..data`, which a
//! watch on the file would report as a deletion. The mask leaves out opens and reads, so reading the
//! files does not wake the manager.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InotifyEvent, WatchDescriptor};

use crate::inotify::{Source, chain, unwatched};

/// How often to follow the paths again because they changed meanwhile.
const ATTEMPTS: usize = 8;

type Wanted = BTreeMap<PathBuf, BTreeSet<OsString>>;

/// The watches of the key files.
#[derive(Debug)]
pub(super) struct KeyWatch {
    source: Arc<Source>,
    /// Absolute paths of the key files.
    files: Vec<PathBuf>,
    names: BTreeMap<WatchDescriptor, BTreeSet<OsString>>,
}

impl KeyWatch {
    /// A value without watches.
    pub(super) fn new(source: Arc<Source>, files: Vec<PathBuf>) -> Self {
        Self { source, files, names: BTreeMap::new() }
    }

    /// Sets the watches anew: links may lead elsewhere, and a directory may be another one. Call it
    /// before the files are read, so that no change is missed. Blocks.
    ///
    /// # Errors
    /// Directories that cannot be watched, and what to do.
    pub(super) fn sync(&mut self) -> Result<(), String> {
        for _ in 0..ATTEMPTS {
            let wanted = self.wanted();
            let result = self.set(&wanted);
            if result.is_err() || self.wanted() == wanted {
                return result;
            }
        }
        // Each change until now is an event, so the next reading follows.
        Ok(())
    }

    fn wanted(&self) -> Wanted {
        let mut wanted = Wanted::new();
        for file in &self.files {
            let chain = chain(file);
            let file = chain
                .end
                .and_then(|end| Some((end.parent()?.to_owned(), end.file_name()?.to_owned())));
            for (directory, name) in chain.entries.into_iter().chain(file) {
                wanted.entry(directory).or_default().insert(name);
            }
        }
        wanted
    }

    fn set(&mut self, wanted: &Wanted) -> Result<(), String> {
        let mask = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_MOVED_FROM
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ONLYDIR;
        let mut result = Ok(());
        let mut set: BTreeMap<WatchDescriptor, BTreeSet<OsString>> = BTreeMap::new();
        for (directory, names) in wanted {
            match self.source.0.add_watch(directory, mask) {
                Ok(watch) => set.entry(watch).or_default().extend(names.iter().cloned()),
                // Gone since the path was followed: it is followed again.
                Err(Errno::ENOENT | Errno::ENOTDIR) => {}
                Err(error) => result = Err(unwatched(directory, error)),
            }
        }
        for watch in self.names.keys().filter(|watch| !set.contains_key(watch)) {
            // Fails for a directory that is gone; its watch is gone, too.
            let _ = self.source.0.rm_watch(*watch);
        }
        self.names = set;
        result
    }

    /// Reads all queued events. True if one may be about the key files.
    pub(super) fn take_events(&self) -> bool {
        let mut concerned = false;
        loop {
            match self.source.0.read_events() {
                Ok(events) => concerned |= events.iter().any(|event| self.concerns(event)),
                Err(Errno::EINTR) => {}
                Err(_) => return concerned,
            }
        }
    }

    fn concerns(&self, event: &InotifyEvent) -> bool {
        if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            return true;
        }
        // An event of a watch that was removed is about nothing any more.
        let Some(names) = self.names.get(&event.wd) else { return false };
        // An event without a name is about the directory itself.
        event.name.as_ref().is_none_or(|name| names.contains(name))
    }
}
