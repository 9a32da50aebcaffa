//! The known state of the mounted config, how it is published, and mounts that never change.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tokio::sync::{Notify, watch};

use super::ConfigSettings;
use super::generation::{Entry, Generation, Mount, read_all};
use super::kept::Store;
use super::progress::Progress;
use super::work_permit::Exclusive;
use crate::worker::Worker;
use stayput_api::ConfigFile;
use stayput_api::checksum::Checksum;

/// The largest number of messages in [`Observed::errors`]: more do not help.
const MOST_ERRORS: usize = 16;

/// The mounted config as it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Checksum of the files that are not live; `None` without directories, or where they cannot be
    /// read as one generation.
    pub checksum: Option<Checksum>,
    /// Every file that could be read, sorted by listed path.
    pub files: Vec<ConfigFile>,
    /// Problems and what to do, one message each.
    pub errors: Vec<String>,
    /// Checksum of the kept generation.
    pub last_good: Option<Checksum>,
    /// When the mounts were last read. If nothing else is new, no receiver wakes up.
    pub observed_at: SystemTime,
    /// Increases when files that are not live changed, or when a volume with such files was
    /// swapped, even to the same content: between two readings there may have been another one.
    pub change_count: u64,
}

/// State that a reading leaves for the next one.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Volumes with files that are not live.
    mounts: Vec<Mount>,
    /// Problems that the last reading found.
    problems: Vec<String>,
}

/// Known checksum and faults, by where they were found. Locked for moments only.
#[derive(Debug, Default)]
struct Known {
    /// Checksum as last read; not published while the reading cannot be repeated.
    checksum: Option<Checksum>,
    mounts: Vec<String>,
    kept: Option<String>,
    unpinned: Option<String>,
    /// Message while the volume of the config, or of a staging target, does not answer.
    hanging: Option<String>,
    /// Message while the volume of the kept generations does not answer.
    kept_hanging: Option<String>,
}

impl Known {
    fn errors(&self) -> Vec<String> {
        let hanging = self.hanging.iter().chain(&self.kept_hanging);
        let found = self.mounts.iter();
        let kept = self.kept.iter().chain(&self.unpinned);
        let mut errors: Vec<String> = hanging.chain(found).chain(kept).cloned().collect();
        if let Some(more) = errors.len().checked_sub(MOST_ERRORS).filter(|more| *more > 0) {
            errors.truncate(MOST_ERRORS);
            errors.push(format!("and {more} more"));
        }
        errors
    }
}

/// State that receivers see.
#[derive(Debug)]
pub(super) struct Published {
    sender: watch::Sender<Arc<Observed>>,
    known: Mutex<Known>,
}

impl Published {
    fn new() -> Self {
        let observed = Observed {
            checksum: None,
            files: Vec::new(),
            errors: Vec::new(),
            last_good: None,
            observed_at: SystemTime::UNIX_EPOCH,
            change_count: 0,
        };
        Self { sender: watch::Sender::new(Arc::new(observed)), known: Mutex::default() }
    }

    /// Changes what is known. Receivers wake up if more than the time of a reading is new.
    fn change(&self, change: impl FnOnce(&mut Known, &mut Observed)) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        self.sender.send_if_modified(|shared| {
            let before = Arc::clone(shared);
            let observed = Arc::make_mut(shared);
            change(&mut known, observed);
            observed.checksum = known.checksum.clone().filter(|_| known.hanging.is_none());
            observed.errors = known.errors();
            let time = Observed { observed_at: observed.observed_at, ..Observed::clone(&before) };
            time != *observed
        });
    }

    pub(super) fn last_good(&self, checksum: Option<Checksum>) {
        self.change(|_, observed| observed.last_good = checksum);
    }

    /// Sets the reason why the last generation was not kept, or clears it.
    pub(super) fn kept_problem(&self, problem: Option<String>) {
        self.change(|known, _| known.kept = problem);
    }

    /// Sets the reason why the engine came back on another generation than it was told to run, or clears it.
    pub(super) fn unpinned(&self, problem: Option<String>) {
        self.change(|known, _| known.unpinned = problem);
    }
}

/// State that the handle shares with its task.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: ConfigSettings,
    pub(super) published: Arc<Published>,
    /// Reading and staging: an earlier reading must not be published later, and two stagings must
    /// not mix.
    pub(super) work: Exclusive<Work>,
    /// Kept generations; `None` where nothing is kept.
    pub(super) store: Option<Exclusive<Store>>,
    /// Wakes the task to read the directories again.
    pub(super) asked: Notify,
}

impl Shared {
    /// State before the first reading.
    pub(super) fn new(settings: ConfigSettings, worker: Worker, keeper: Worker) -> Self {
        let published = Arc::new(Published::new());
        let shown = Arc::clone(&published);
        let hanging = Progress::new(move |message| {
            shown.change(|known, _| known.hanging = message);
        });
        let root = settings.keep_last_good.as_deref().filter(|_| settings.all_staged());
        let store = root.map(|root| {
            let shown = Arc::clone(&published);
            let hanging = Progress::new(move |message| {
                shown.change(|known, _| known.kept_hanging = message);
            });
            Exclusive::new(Store::new(root), hanging, keeper)
        });
        let work = Exclusive::new(Work::default(), hanging, worker);
        Self { settings, published, work, store, asked: Notify::new() }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<Observed>> {
        self.published.sender.subscribe()
    }

    /// Reads the mounts and publishes changes. Also returns [`Observed::change_count`]. Takes as
    /// long as the file system takes.
    pub(super) fn observe(&self, work: &mut Work, progress: &Progress) -> (Generation, u64) {
        let read = read_all(&self.settings, progress);
        work.problems = read.messages();
        work.problems.extend(self.subpaths());
        let files: Vec<ConfigFile> = read.files().collect();
        let mounts = counted_mounts(&read, &self.settings);
        let mut change_count = 0;
        self.published.change(|known, observed| {
            let swapped = work.mounts != mounts
                || known.checksum != read.checksum
                || !counted(&observed.files).eq(counted(&files));
            known.checksum.clone_from(&read.checksum);
            known.mounts.clone_from(&work.problems);
            observed.observed_at = SystemTime::now();
            observed.change_count += u64::from(swapped);
            observed.files = files;
            change_count = observed.change_count;
        });
        work.mounts = mounts;
        (read, change_count)
    }

    fn subpaths(&self) -> Vec<String> {
        if self.settings.dirs.is_empty() {
            return Vec::new();
        }
        // Without /proc the manager has larger problems than this check.
        let Ok(mountinfo) = std::fs::read("/proc/self/mountinfo") else { return Vec::new() };
        let dirs = self.settings.dirs.iter();
        dirs.filter_map(|dir| dir.path.canonicalize().ok())
            .flat_map(|dir| messages(&mountinfo, &dir, Path::is_dir))
            .collect()
    }
}

/// The files that the checksum covers.
fn counted(files: &[ConfigFile]) -> impl Iterator<Item = &ConfigFile> {
    files.iter().filter(|file| !file.live)
}

/// The volumes that a swap may bring other files to than live ones: all but those which hold only
/// live files.
fn counted_mounts(read: &Generation, settings: &ConfigSettings) -> Vec<Mount> {
    let only_live = |mount: &&Mount| {
        let path = |entry: &Entry| settings.dirs[entry.dir].path.join(&entry.relative);
        let mut inside =
            read.entries.iter().filter(|entry| path(entry).starts_with(&mount.path)).peekable();
        inside.peek().is_some() && inside.all(|entry| entry.live)
    };
    read.fingerprint.mounts.iter().filter(|mount| !only_live(mount)).cloned().collect()
}

// Mounts that never change while the container lives: subPath and single-file mounts.
//
// The kubelet binds the one file or directory that the path led to when the container was made.
// The next generation of the volume is another directory, so the container keeps the old file.
// `/proc/self/mountinfo` shows it: the root of such a mount is a path inside the volume, below a
// generation's directory (`..2026_…`), and marked deleted once that generation is gone.

/// A message for each mount at or below `dir` (an absolute path without links) that cannot change.
pub(super) fn messages(
    mountinfo: &[u8],
    dir: &Path,
    is_directory: impl Fn(&Path) -> bool,
) -> Vec<String> {
    mountinfo
        .split(|byte| *byte == b'\n')
        .filter_map(mount)
        .filter(|(_, point)| point.starts_with(dir))
        .filter_map(|(root, point)| {
            let shown = point.display();
            if is_subpath(&root) {
                Some(format!(
                    "{shown} is mounted by subPath and never changes while the container lives: \
                     mount the whole volume on a directory of its own, give that to --config and \
                     copy it to where the engine reads it with --stage"
                ))
            } else if point != dir && !is_directory(&point) {
                Some(format!(
                    "{shown} is a file mounted by itself and does not change when its source is \
                     replaced: mount the directory it comes from, give that to --config and copy \
                     it to where the engine reads it with --stage"
                ))
            } else {
                None
            }
        })
        .collect()
}

/// Root within its filesystem, and mount point, of a line of mountinfo (proc_pid_mountinfo(5)).
fn mount(line: &[u8]) -> Option<(PathBuf, PathBuf)> {
    let mut fields = line.split(|byte| *byte == b' ').skip(3);
    Some((unescaped(fields.next()?), unescaped(fields.next()?)))
}

fn is_subpath(root: &Path) -> bool {
    root.as_os_str().as_bytes().ends_with(b"//deleted")
        || root.components().any(|component| match component {
            Component::Normal(name) => {
                let name = name.as_bytes();
                name == b"volume-subpaths"
                    || name.strip_prefix(b"..").is_some_and(|rest| rest.starts_with(b"2"))
            }
            Component::Prefix(_)
            | Component::RootDir
            | Component::CurDir
            | Component::ParentDir => false,
        })
}

/// The field without escapes: space, tab, newline and backslash are written as three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let octal = tail
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        rest = match octal {
            Some(byte) => {
                bytes.push(byte);
                &tail[3..]
            }
            None => {
                bytes.push(*first);
                tail
            }
        };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(mountinfo: &str) -> Vec<String> {
        messages(mountinfo.as_bytes(), Path::new("/config"), |path| {
            path.extension().is_none_or(|extension| extension == "d")
        })
    }

    #[test]
    fn whole_volumes_and_mounts_elsewhere_are_fine() {
        let mountinfo = "\
22 1 0:20 / / rw,relatime - overlay overlay rw
36 22 0:45 / /config ro,relatime - tmpfs tmpfs rw,size=8k
37 22 8:1 /var/lib/kubelet/pods/u/volumes/kubernetes.io~configmap/c /config/jvm.options.d ro - ext4 /dev/sda1 rw
38 22 0:46 /..2026_11_21_09_00_00.1/hosts.yml /config2/hosts.yml ro - tmpfs tmpfs rw
39 22 8:1 /var/lib/docker/x/hosts /etc/hosts rw - ext4 /dev/sda1 rw
";
        assert_eq!(found(mountinfo), Vec::<String>::new());
    }

    #[test]
    fn subpath_mounts_are_named_with_what_to_do() {
        for root in [
            "/..2026_11_21_09_00_00.123456789/elasticsearch.yml",
            "/..2026_11_21_09_00_00.123456789/elasticsearch.yml//deleted",
            "/old//deleted",
            "/var/lib/kubelet/pods/u/volume-subpaths/config/elasticsearch/0",
            "/var/lib/kubelet/pods/u/volumes/kubernetes.io~configmap/c/..2026_11_21/elasticsearch.yml",
        ] {
            let line = format!("36 22 0:45 {root} /config/elasticsearch.yml ro - tmpfs tmpfs rw");
            let found = found(&line);
            assert_eq!(found.len(), 1, "{root}");
            assert!(found[0].starts_with("/config/elasticsearch.yml is mounted by subPath"));
            assert!(found[0].contains("--stage"));
        }
    }

    #[test]
    fn a_directory_may_itself_be_a_subpath() {
        assert_eq!(found("36 22 0:45 /..2026_11_21/sub /config ro - tmpfs tmpfs rw").len(), 1);
    }

    #[test]
    fn a_file_mounted_by_itself_is_named() {
        let found = found("36 22 8:1 /home/me/es.yml /config/my\\040es.yml ro - ext4 /dev/sda1 rw");
        assert!(found[0].starts_with("/config/my es.yml is a file mounted by itself"), "{found:?}");
    }

    #[test]
    fn a_torn_mountinfo_tells_nothing() {
        assert_eq!(found("36 22\n\n36 22 0:45 /x\n\\0 \\ \\999 \\99 \\"), Vec::<String>::new());
    }
}
