//! Reads keys and certificates again when their mounted files change.
//!
//! Watches the directories, not the files: kubelet replaces a mounted Secret by renaming `..data`,
//! which a watch on the file would report as a deletion. The mask leaves out opens and reads, so
//! reading the files does not wake the manager.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent};
use thiserror::Error;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::time::sleep;

use super::key_files::{KeyFiles, Keys};
use crate::errors::Errors;
use crate::worker::{NoThread, Worker};

/// From the first change to reading the files: certificate and key are written one by one.
const SETTLE_TIME: Duration = Duration::from_millis(50);

/// Why changes of key files are not noticed.
#[derive(Debug, Error)]
pub enum WatchError {
    #[error(
        "changes of key files cannot be watched: {0}; raise fs.inotify.max_user_instances or \
         fs.inotify.max_user_watches"
    )]
    Inotify(#[source] io::Error),
    #[error(
        "{}: the directory of key files cannot be watched: {source}; check the path and its mount",
        directory.display()
    )]
    Directory { directory: PathBuf, source: io::Error },
    #[error(transparent)]
    Thread(#[from] NoThread),
}

/// A watch on the directories of the key files.
#[derive(Debug)]
pub(super) struct Watch {
    inotify: AsyncFd<Fd>,
    directories: BTreeSet<PathBuf>,
    names: BTreeSet<OsString>,
    /// Reads the files.
    worker: Worker,
}

/// nix implements only the newer trait, tokio asks for the older one.
#[derive(Debug)]
struct Fd(Inotify);

impl AsRawFd for Fd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Watch {
    /// Watches the directories of these files. Call it before they are read, so that no change is
    /// missed. `None` if there are no files.
    ///
    /// # Errors
    /// [`WatchError`] if the kernel grants no watch or a directory does not exist.
    pub(super) fn new<'a>(
        files: impl Iterator<Item = &'a Path>,
        errors: &Errors,
    ) -> Result<Option<Self>, WatchError> {
        let (mut directories, mut names) = (BTreeSet::new(), BTreeSet::new());
        for file in files {
            let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
            directories.insert(parent.unwrap_or(Path::new(".")).to_owned());
            names.extend(file.file_name().map(OsStr::to_owned));
        }
        if directories.is_empty() {
            return Ok(None);
        }
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)
            .map_err(|error| WatchError::Inotify(error.into()))?;
        // The newer function is `unsafe`, which only `process` may use. Its requirement (one
        // descriptor, open as long as this lives) is met by an owned descriptor.
        #[allow(deprecated)]
        let inotify =
            AsyncFd::with_interest(Fd(inotify), Interest::READABLE).map_err(WatchError::Inotify)?;
        let worker = Worker::start("keys", errors)?;
        let watch = Self { inotify, directories, names, worker };
        watch.set().map(|()| Some(watch))
    }

    /// Sets the watches; also after each event, because a directory may have been replaced. Setting
    /// a watch that exists changes nothing.
    fn set(&self) -> Result<(), WatchError> {
        let mask = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_MOVED_FROM
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ONLYDIR;
        for directory in &self.directories {
            self.inotify.get_ref().0.add_watch(directory, mask).map_err(|error| {
                WatchError::Directory { directory: directory.clone(), source: error.into() }
            })?;
        }
        Ok(())
    }

    /// Returns after an event that may be about the key files.
    async fn changed(&self) -> io::Result<()> {
        loop {
            let mut guard = self.inotify.readable().await?;
            let read = guard.try_io(|fd| Ok(fd.get_ref().0.read_events()?));
            let Ok(events) = read else { continue };
            if events?.iter().any(|event| self.concerns(event)) {
                return Ok(());
            }
        }
    }

    fn concerns(&self, event: &InotifyEvent) -> bool {
        // An event without a name is about a directory as a whole, or about lost events.
        event.name.as_ref().is_none_or(|name| {
            self.names.contains(name) || name.as_encoded_bytes().starts_with(b"..")
        })
    }

    /// Discards the queued events: the files are read after this.
    fn drain(&self) {
        loop {
            match self.inotify.get_ref().0.read_events() {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    }
}

/// Publishes the keys in force after each change, until there is no receiver any more.
pub(super) async fn reload_on_change(
    watch: Watch,
    mut files: KeyFiles,
    published: watch::Sender<Arc<Keys>>,
) {
    loop {
        tokio::select! {
            changed = watch.changed() => if let Err(error) = changed {
                tracing::error!(%error, "keys and certificates are no longer reloaded");
                return;
            },
            () = published.closed() => return,
        }
        sleep(SETTLE_TIME).await;
        watch.drain();
        let lost_watch = watch.set().err();
        let reread = watch.worker.run(move || (files.reread(), files)).await;
        let Ok((changed, reread_files)) = reread else { return };
        files = reread_files;
        if !changed && lost_watch.is_none() {
            continue;
        }
        let mut keys = files.keys();
        if keys.is_current {
            tracing::info!("keys and certificates were reloaded");
        }
        for error in files.errors() {
            tracing::error!(%error, "a new key or certificate cannot be used; the old one stays");
        }
        if let Some(error) = lost_watch {
            tracing::error!(%error, "keys and certificates are no longer reloaded");
            keys.is_current = false;
        }
        published.send_replace(Arc::new(keys));
    }
}
