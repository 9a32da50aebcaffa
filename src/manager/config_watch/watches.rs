//! inotify on the config directories, with a mask that does not react to reading.
//!
//! Why not the `notify` crate: `docs/adr/0001-inotify-without-notify.md`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InotifyEvent, WatchDescriptor};

use crate::inotify::{Source, chain, unwatched};

/// Something in a directory has changed. Not opens and reads: an engine that reads its config must
/// not wake the manager. Not single writes: the close follows the last one.
const CHANGES: AddWatchFlags = AddWatchFlags::IN_CLOSE_WRITE
    .union(AddWatchFlags::IN_CREATE)
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_MOVED_FROM)
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_ATTRIB)
    .union(GONE);
/// The directory itself is removed or renamed.
const GONE: AddWatchFlags = AddWatchFlags::IN_DELETE_SELF.union(AddWatchFlags::IN_MOVE_SELF);
/// A link was replaced: the name now refers to another file.
const NAMES: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_MOVED_FROM)
    .union(AddWatchFlags::IN_MOVED_TO);
/// A name now refers to something else, or its directory is gone.
const LINKS: AddWatchFlags = NAMES.union(GONE);

/// `IN_MASK_ADD`, which nix lacks.
const MASK_ADD: AddWatchFlags = AddWatchFlags::from_bits_retain(libc::IN_MASK_ADD);

/// Reason to watch a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Purpose {
    /// Part of the config. Of the kubelet's own names (`..`) only `..data` counts.
    Config,
    /// A directory where this name decides where a root leads: a link, or a missing directory.
    Link(OsString),
}

/// Meaning of the events that were read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// True if the directories have to be read again.
    pub(super) changed: bool,
    /// True if events were lost.
    pub(super) overflow: bool,
    /// True if no event is left to read.
    pub(super) drained: bool,
}

/// The result of setting the watches.
#[derive(Debug, Default)]
pub(super) struct Synced {
    /// True if a directory is watched that was not watched before: earlier changes in it are not known.
    pub(super) fresh: bool,
    /// Reasons why directories could not be watched.
    pub(super) unwatched: Vec<String>,
}

/// The watches that are set.
#[derive(Debug)]
pub(super) struct Watches {
    source: Arc<Source>,
    purposes: BTreeMap<WatchDescriptor, Vec<Purpose>>,
}

impl Watches {
    /// No watches yet.
    pub(super) fn new(source: Arc<Source>) -> Self {
        Self { source, purposes: BTreeMap::new() }
    }

    /// Watches these directories and whatever shows that a root leads elsewhere, and no others.
    /// Setting a watch again finds a directory that was replaced: it is another inode.
    pub(super) fn sync<'a>(
        &mut self,
        roots: impl Iterator<Item = &'a Path>,
        directories: &[PathBuf],
    ) -> Synced {
        let mut synced = Synced::default();
        let mut wanted: Vec<(PathBuf, Purpose)> = roots.flat_map(root_and_links).collect();
        wanted.extend(directories.iter().map(|path| (path.clone(), Purpose::Config)));
        let mut purposes: BTreeMap<WatchDescriptor, Vec<Purpose>> = BTreeMap::new();
        for (path, purpose) in wanted {
            let mask = match purpose {
                Purpose::Config => CHANGES,
                Purpose::Link(_) => LINKS,
            };
            // One directory may be wanted for two purposes: masks add up.
            let mask = mask | AddWatchFlags::IN_ONLYDIR | MASK_ADD;
            match self.source.0.add_watch(&path, mask) {
                Ok(watch) => {
                    let before = self.purposes.get(&watch);
                    synced.fresh |= before.is_none_or(|before| !before.contains(&purpose));
                    purposes.entry(watch).or_default().push(purpose);
                }
                // The directory is gone; the watch of its parent reports that.
                Err(Errno::ENOENT | Errno::ENOTDIR) => synced.fresh = true,
                Err(error) => synced.unwatched.push(unwatched(&path, error)),
            }
        }
        for watch in self.purposes.keys().filter(|watch| !purposes.contains_key(watch)) {
            // Fails for a directory that is gone; its watch is gone, too.
            let _ = self.source.0.rm_watch(*watch);
        }
        self.purposes = purposes;
        synced
    }

    /// Reads the queued events, up to a limit.
    pub(super) fn read(&self) -> Changes {
        let mut changes = Changes::default();
        for _ in 0..64 {
            match self.source.0.read_events() {
                Ok(events) => events.iter().for_each(|event| self.classify(event, &mut changes)),
                Err(Errno::EINTR) => {}
                Err(_) => {
                    changes.drained = true;
                    break;
                }
            }
        }
        changes
    }

    fn classify(&self, event: &InotifyEvent, changes: &mut Changes) {
        if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            changes.changed = true;
            changes.overflow = true;
            return;
        }
        // An event of a watch that was removed: ignored.
        let Some(purposes) = self.purposes.get(&event.wd) else { return };
        let Some(name) = &event.name else {
            changes.changed = true;
            return;
        };
        changes.changed |= purposes.iter().any(|purpose| match purpose {
            // Of the five events of a swap only the rename of `..data` is one.
            Purpose::Config if name.as_bytes().starts_with(b"..") => {
                name == OsStr::new("..data") && event.mask.intersects(NAMES)
            }
            Purpose::Config => true,
            Purpose::Link(link) => name == link,
        });
    }
}

/// A root that exists, whether or not the last reading found it, and what decides where it leads.
fn root_and_links(root: &Path) -> impl Iterator<Item = (PathBuf, Purpose)> {
    let there = root.is_dir().then(|| (root.to_owned(), Purpose::Config));
    let links = chain(root).entries.into_iter();
    there.into_iter().chain(links.map(|(directory, name)| (directory, Purpose::Link(name))))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use nix::sys::inotify::{InitFlags, Inotify};
    use tempfile::{TempDir, tempdir};

    use super::*;

    fn unset() -> Watches {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).unwrap();
        Watches::new(Arc::new(Source(inotify)))
    }

    fn watched() -> (TempDir, Watches) {
        let dir = tempdir().unwrap();
        fs::create_dir(dir.path().join("..1")).unwrap();
        fs::write(dir.path().join("..1/x"), "1").unwrap();
        symlink("..1", dir.path().join("..data")).unwrap();
        symlink("..data/x", dir.path().join("x")).unwrap();
        fs::write(dir.path().join("plain"), "1").unwrap();
        let mut watches = unset();
        assert!(watches.sync([dir.path()].into_iter(), &[]).fresh);
        assert!(!watches.sync([dir.path()].into_iter(), &[dir.path().to_owned()]).fresh);
        (dir, watches)
    }

    const QUIET: Changes = Changes { changed: false, overflow: false, drained: true };
    const CHANGED: Changes = Changes { changed: true, overflow: false, drained: true };

    #[test]
    fn reading_is_no_event_at_all() {
        let (dir, watches) = watched();
        fs::read(dir.path().join("x")).unwrap();
        fs::read(dir.path().join("plain")).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 4);
        assert_eq!(watches.source.0.read_events().err(), Some(Errno::EAGAIN));
    }

    #[test]
    fn of_a_swap_only_the_rename_counts() {
        let (dir, watches) = watched();
        fs::create_dir(dir.path().join("..2")).unwrap();
        fs::write(dir.path().join("..2/x"), "2").unwrap();
        symlink("..2", dir.path().join("..data_tmp")).unwrap();
        assert_eq!(watches.read(), QUIET);
        fs::rename(dir.path().join("..data_tmp"), dir.path().join("..data")).unwrap();
        assert_eq!(watches.read(), CHANGED);
        fs::remove_dir_all(dir.path().join("..1")).unwrap();
        assert_eq!(watches.read(), QUIET);
    }

    #[test]
    fn every_other_change_counts() {
        let (dir, watches) = watched();
        let file = dir.path().join("plain");
        fs::write(&file, "2").unwrap();
        assert_eq!(watches.read(), CHANGED);
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(watches.read(), CHANGED);
        fs::rename(&file, dir.path().join("other")).unwrap();
        assert_eq!(watches.read(), CHANGED);
        fs::remove_file(dir.path().join("other")).unwrap();
        assert_eq!(watches.read(), CHANGED);
    }

    #[test]
    fn a_missing_root_is_awaited_by_name_where_it_will_appear() {
        let dir = tempdir().unwrap();
        let root = dir.path().join("a/b");
        let mut watches = unset();
        assert!(watches.sync([root.as_path()].into_iter(), &[]).fresh);
        fs::write(dir.path().join("other"), "").unwrap();
        assert_eq!(watches.read(), QUIET);
        fs::create_dir(dir.path().join("a")).unwrap();
        assert_eq!(watches.read(), CHANGED);
        assert!(watches.sync([root.as_path()].into_iter(), &[]).fresh);
        fs::create_dir(&root).unwrap();
        assert_eq!(watches.read(), CHANGED);
        // It exists now: it is watched itself, and the watch that waited for it is removed.
        assert!(watches.sync([root.as_path()].into_iter(), &[]).fresh);
        fs::write(dir.path().join("a/other"), "").unwrap();
        assert_eq!(watches.read(), QUIET);
    }

    #[test]
    fn a_link_far_from_the_root_counts() {
        let dir = tempdir().unwrap();
        for name in ["v1", "v2", "etc"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let (root, current) = (dir.path().join("etc/config"), dir.path().join("current"));
        symlink("../current", &root).unwrap();
        symlink("v1", &current).unwrap();
        let mut watches = unset();
        assert!(watches.sync([root.as_path()].into_iter(), &[]).fresh);
        symlink("v2", dir.path().join("new")).unwrap();
        assert_eq!(watches.read(), QUIET);
        fs::rename(dir.path().join("new"), &current).unwrap();
        assert_eq!(watches.read(), CHANGED);
        assert!(watches.sync([root.as_path()].into_iter(), &[]).fresh, "v2 is another directory");
    }

    #[test]
    fn a_full_queue_is_noticed() {
        let (dir, watches) = watched();
        let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        for _ in 0..=most.trim().parse::<usize>().unwrap() / 2 {
            fs::create_dir(dir.path().join("..3")).unwrap();
            fs::remove_dir(dir.path().join("..3")).unwrap();
        }
        let mut changes = watches.read();
        while !changes.drained {
            changes = watches.read();
        }
        assert_eq!(changes, Changes { changed: true, overflow: true, drained: true });
    }
}
