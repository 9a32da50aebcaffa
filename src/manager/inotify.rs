//! inotify for the reactor, and which directories decide where a path leads.
//!
//! Used for the mounted config, for keys and for the engine's variables. Each has its own instance, watches and mask.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// An inotify instance. nix implements only the newer trait, tokio asks for the older one.
#[derive(Debug)]
pub(crate) struct Source(pub(crate) Inotify);

impl AsRawFd for Source {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// Becomes readable with an event.
pub(crate) type Events = AsyncFd<Arc<Source>>;

/// Makes an instance without watches.
pub(crate) fn open() -> io::Result<Events> {
    let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
    // Its successor is an `unsafe fn`, which only `process` may call. Its requirement is met: the
    // source owns its descriptor, never replaces it, and lives as long as the AsyncFd.
    #[allow(deprecated, reason = "only the module `process` may use unsafe")]
    AsyncFd::with_interest(Arc::new(Source(inotify)), Interest::READABLE)
}

/// Reason why `what` cannot be watched at all, and what to do.
pub(crate) fn unavailable(what: &str, error: &io::Error) -> String {
    if error.raw_os_error() == Some(Errno::EMFILE as i32) {
        return format!(
            "{what} cannot be watched: this node's limit fs.inotify.max_user_instances (or our \
             limit of open files) is reached; raise it"
        );
    }
    format!("{what} cannot be watched: {error}")
}

/// Reason why a path cannot be watched, and what to do.
pub(crate) fn unwatched(path: &std::path::Path, error: Errno) -> String {
    let path = path.display();
    match error {
        Errno::ENOSPC => format!(
            "{path} cannot be watched: this node's limit fs.inotify.max_user_watches is reached; \
             raise it"
        ),
        other => format!("{path} cannot be watched: {}", other.desc()),
    }
}

/// Longest chain of links, as in the kernel.
const MAX_LINKS: usize = 40;

/// Where a path leads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    /// Directory and name of each link on the way. If the path leads to nothing, the last one is
    /// the name that is missing.
    pub(crate) entries: Vec<(PathBuf, OsString)>,
    /// Path without links, if the path leads to something.
    pub(crate) end: Option<PathBuf>,
}

/// Follows an absolute path. Blocks.
pub(crate) fn chain(path: &Path) -> Chain {
    let mut chain = Chain::default();
    let mut at = PathBuf::from("/");
    let mut rest: VecDeque<OsString> = names(path).collect();
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&name);
        let found = fs::symlink_metadata(&next);
        if found
            .as_ref()
            .is_ok_and(|found| found.is_dir() || !found.is_symlink() && rest.is_empty())
        {
            at = next;
            continue;
        }
        chain.entries.push((at.clone(), name));
        // Otherwise nothing is there, or a file where a directory should be.
        let is_link = found.is_ok_and(|found| found.is_symlink());
        if !is_link || chain.entries.len() > MAX_LINKS {
            return chain;
        }
        let Ok(target) = fs::read_link(&next) else { return chain };
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        names(&target).rev().for_each(|name| rest.push_front(name));
    }
    chain.end = Some(at);
    chain
}

fn names(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + '_ {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

/// Returns after an event that may be about the files.
pub(crate) async fn changed(ready: Option<&Events>, watch: Option<&FileWatch>) {
    let (Some(ready), Some(watch)) = (ready, watch) else { return std::future::pending().await };
    // An error means that the reactor is gone, and the task goes with it.
    while let Ok(mut guard) = ready.readable().await {
        let concerned = watch.take_events();
        guard.clear_ready();
        if concerned {
            return;
        }
    }
    std::future::pending().await
}

// Watches everything that decides where the paths of files lead.
//
// Watches directories, not files: kubelet replaces a mounted Secret by renaming `..data`, which a
// watch on the file would report as a deletion. The mask leaves out opens and reads, so reading the
// files does not wake the manager.

/// How often to follow the paths again because they changed meanwhile.
const ATTEMPTS: usize = 8;

type Wanted = BTreeMap<PathBuf, BTreeSet<OsString>>;

/// The watches of files, such as keys.
#[derive(Debug)]
pub(crate) struct FileWatch {
    source: Arc<Source>,
    /// Absolute paths of the files.
    files: Vec<PathBuf>,
    names: BTreeMap<WatchDescriptor, BTreeSet<OsString>>,
}

impl FileWatch {
    /// A value without watches.
    pub(crate) fn new(source: Arc<Source>, files: Vec<PathBuf>) -> Self {
        Self { source, files, names: BTreeMap::new() }
    }

    /// Sets the watches anew: links may lead elsewhere, and a directory may be another one. Call it
    /// before the files are read, so that no change is missed. Blocks.
    ///
    /// # Errors
    /// Directories that cannot be watched, and what to do.
    pub(crate) fn sync(&mut self) -> Result<(), String> {
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

    /// Reads all queued events. True if one may be about the files.
    pub(crate) fn take_events(&self) -> bool {
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends with a panic")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_link_on_the_way_is_named_and_so_is_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let entry = |at: &str, name: &str| (dir.join(at), OsString::from(name));
        fs::create_dir_all(dir.join("vault/v1")).unwrap();
        fs::create_dir(dir.join("etc")).unwrap();
        symlink("../vault/current", dir.join("etc/keys")).unwrap();
        symlink(dir.join("vault/v1"), dir.join("vault/current")).unwrap();
        let path = dir.join("etc/keys/tls.crt");
        let missing = chain(&path);
        let links = [entry("etc", "keys"), entry("vault", "current")];
        assert_eq!(missing.entries, [&links[..], &[entry("vault/v1", "tls.crt")]].concat());
        assert_eq!(missing.end, None);

        fs::write(dir.join("vault/v1/tls.crt"), "").unwrap();
        let found = chain(&path);
        assert_eq!(found.entries, links);
        assert_eq!(found.end, Some(dir.join("vault/v1/tls.crt")));

        let through_a_file = chain(&path.join("below"));
        assert_eq!(through_a_file.entries.last(), Some(&entry("vault/v1", "tls.crt")));
        assert_eq!(through_a_file.end, None);
        symlink("loop", dir.join("loop")).unwrap();
        assert_eq!(chain(&dir.join("loop")).end, None);
    }
}
