//! Re-reads keys and certificates when their mounted files change.
//!
//! Watches the directories, not the files: kubelet renews a mounted Secret by renaming `..data`,
//! which a watch on the file would see as a deletion. The mask leaves out opens and reads, so
//! reading the files does not wake us.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::material::{Files, Material};

/// How long to let a writer finish after its first step: certificate and key come one by one.
const SETTLE: Duration = Duration::from_millis(50);

/// A watch on the directories of the key files.
#[derive(Debug)]
pub(super) struct Watch {
    inotify: AsyncFd<Fd>,
    directories: BTreeSet<PathBuf>,
    names: BTreeSet<OsString>,
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
    /// Watches where these files are. To be called before they are read, so that no change falls
    /// in between. `None` if there are no files.
    ///
    /// # Errors
    /// A sentence, if the kernel grants no watch or a directory does not exist.
    pub(super) fn new<'a>(files: impl Iterator<Item = &'a Path>) -> Result<Option<Self>, String> {
        let (mut directories, mut names) = (BTreeSet::new(), BTreeSet::new());
        for file in files {
            let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
            directories.insert(parent.unwrap_or(Path::new(".")).to_owned());
            names.extend(file.file_name().map(OsStr::to_owned));
        }
        if directories.is_empty() {
            return Ok(None);
        }
        let no_watch = |error: io::Error| {
            format!(
                "changes of key files cannot be watched: {error}; raise \
                 fs.inotify.max_user_instances or fs.inotify.max_user_watches"
            )
        };
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)
            .map_err(|error| no_watch(error.into()))?;
        // Its successor is `unsafe`, which is for `process` alone; what that would have us promise
        // (one descriptor, open as long as this lives) an owned descriptor keeps by itself.
        #[allow(deprecated)]
        let inotify = AsyncFd::with_interest(Fd(inotify), Interest::READABLE).map_err(no_watch)?;
        let watch = Self { inotify, directories, names };
        watch.set().map(|()| Some(watch))
    }

    /// Sets the watches. Again after each event: a directory may have been replaced, and setting
    /// a watch that exists changes nothing.
    fn set(&self) -> Result<(), String> {
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
                format!(
                    "{}: the directory of key files cannot be watched: {error}; check the path \
                     and its mount",
                    directory.display()
                )
            })?;
        }
        Ok(())
    }

    /// Returns after something happened that may concern our files.
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
        // Without a name it is about a directory as a whole, or about lost events.
        event.name.as_ref().is_none_or(|name| {
            self.names.contains(name) || name.as_encoded_bytes().starts_with(b"..")
        })
    }

    /// Throws away what is already queued: it is answered by the read that follows.
    fn drain(&self) {
        loop {
            match self.inotify.get_ref().0.read_events() {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    }
}

/// Publishes what is in force after each change, until nobody listens any more.
pub(super) async fn follow(
    watch: Watch,
    mut files: Files,
    published: watch::Sender<Arc<Material>>,
) {
    loop {
        tokio::select! {
            changed = watch.changed() => if let Err(error) = changed {
                tracing::error!(%error, "keys and certificates are no longer reloaded");
                return;
            },
            () = published.closed() => return,
        }
        sleep(SETTLE).await;
        watch.drain();
        let lost = watch.set().err();
        let reread = spawn_blocking(move || (files.reread(), files)).await;
        let Ok((changed, reread_files)) = reread else { return };
        files = reread_files;
        if !changed && lost.is_none() {
            continue;
        }
        let mut material = files.material();
        report(&material.errors);
        if let Some(error) = lost {
            tracing::error!(error, "keys and certificates are no longer reloaded");
            material.errors.push(error);
        }
        published.send_replace(Arc::new(material));
    }
}

fn report(errors: &[String]) {
    if errors.is_empty() {
        tracing::info!("keys and certificates were reloaded");
    }
    for error in errors {
        tracing::error!(error, "a new key or certificate cannot be used; the old one stays");
    }
}
