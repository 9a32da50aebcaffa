//! Kept copies of generations. **They hold the config's secrets**, so the files are 0600 in
//! directories of 0700, and they are only kept if the user asked for it.
//!
//! ```text
//! last-good ─► 2c26b4…        the generation that last proved itself
//! candidate ─► 5891b5…        it became ready, and has not proved itself yet
//! pinned ─► 5891b5…           what the engine was last told to run
//! pinned-before ─► 2c26b4…    before that: the journal may not have the last start yet
//! 2c26b4…/record.json, 0, 1…  a whole generation, under the digits of its checksum
//! ```
//! Each is made, or made to point elsewhere, by one rename. A generation that nothing points to is
//! removed.

mod generation;

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::fcntl::open;
use nix::sys::stat::{Mode, fstat};
use nix::sys::statvfs::statvfs;

use super::generation::{READ, read_file};
use super::progress::Progress;
use crate::files;
use crate::lifecycle::KeepAs;
use stayput_api::checksum::{Checksum, ContentDigest};

pub(super) use generation::{Kept, Staged, StagedFile};

const LAST_GOOD: &str = "last-good";
const CANDIDATE: &str = "candidate";
const PINNED: &str = "pinned";
const PINNED_BEFORE: &str = "pinned-before";
/// A generation that is being written.
const NEW: &str = "new";
/// A link that is being written.
const NEW_LINK: &str = "new-link";
/// Fault of a record.
const OTHER_FILES: &str = "its list of files does not have its checksum";
/// Prefix of a checksum; the names of the directories do not have it.
const ALGORITHM: &str = "sha256:";

/// The directory of the kept generations.
#[derive(Debug)]
pub(super) struct Store {
    root: PathBuf,
}

impl Store {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The last good generation, if there is one.
    pub(super) fn last_good(&self, progress: &Progress) -> Result<Option<Kept>, String> {
        progress.keep(&self.root);
        match self.named(LAST_GOOD) {
            Some(name) => self.load(&name),
            None => Ok(None),
        }
    }

    /// The kept generation with this checksum, if there is one.
    pub(super) fn find(
        &self,
        checksum: &Checksum,
        progress: &Progress,
    ) -> Result<Option<Kept>, String> {
        progress.keep(&self.root);
        self.load(&directory(checksum))
    }

    fn load(&self, name: &Path) -> Result<Option<Kept>, String> {
        let path = self.root.join(name);
        let loaded = match Kept::load(&path) {
            Ok(Some(kept)) if directory(&kept.checksum) != name => Err(OTHER_FILES.to_owned()),
            loaded => loaded,
        };
        loaded.map_err(|fault| {
            format!(
                "the kept config in {} cannot be used: {fault}; remove it, a new one is kept when the \
                 engine is next ready",
                path.display()
            )
        })
    }

    /// Target of a link, if the link exists.
    fn named(&self, link: &str) -> Option<PathBuf> {
        fs::read_link(self.root.join(link)).ok()
    }

    /// Keeps a generation.
    ///
    /// # Errors
    /// The reason why the generation is not kept; all earlier ones are still kept then.
    pub(super) fn keep(
        &self,
        staged: &Staged,
        role: KeepAs,
        progress: &Progress,
    ) -> Result<(), String> {
        progress.keep(&self.root);
        let failed = |error: io::Error| {
            format!("the config cannot be kept in {}: {error}", self.root.display())
        };
        let name = directory(&staged.checksum);
        let kept = self.load(&name);
        if !kept.is_ok_and(|kept| kept.is_some_and(|kept| kept.is_intact())) {
            let write = || {
                make_directory(&self.root)?;
                generation::write(staged, &self.root.join(NEW), &self.root.join(&name))
            };
            if let Some(file) = write().map_err(failed)? {
                return Err(format!(
                    "the config cannot be kept: {} was changed since the engine started, where it is \
                     staged and where it is mounted",
                    file.display()
                ));
            }
        }
        self.assign(&name, role, progress).and_then(|()| self.sweep()).map_err(failed)
    }

    fn assign(&self, name: &Path, role: KeepAs, progress: &Progress) -> io::Result<()> {
        let better = || self.last_good(progress).is_ok_and(|kept| kept.is_some());
        match role {
            KeepAs::Pinned => match self.named(PINNED) {
                Some(before) if before == name => {}
                Some(before) => {
                    self.point(PINNED_BEFORE, &before)?;
                    self.point(PINNED, name)?;
                }
                None => self.point(PINNED, name)?,
            },
            KeepAs::Candidate if better() => self.point(CANDIDATE, name)?,
            KeepAs::Candidate | KeepAs::LastGood => {
                self.point(LAST_GOOD, name)?;
                remove(&self.root.join(CANDIDATE))?;
            }
        }
        sync(&self.root)
    }

    fn point(&self, link: &str, name: &Path) -> io::Result<()> {
        point(&self.root.join(link), name, &self.root.join(NEW_LINK))
    }

    /// Removes entries that nothing points to, also unfinished generations.
    fn sweep(&self) -> io::Result<()> {
        const LINKS: [&str; 4] = [LAST_GOOD, CANDIDATE, PINNED, PINNED_BEFORE];
        let used: Vec<OsString> = LINKS
            .into_iter()
            .flat_map(|link| [Some(link.into()), self.named(link).map(PathBuf::into_os_string)])
            .flatten()
            .collect();
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            if !used.contains(&entry.file_name()) {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// The name of a generation's directory.
fn directory(checksum: &Checksum) -> PathBuf {
    PathBuf::from(checksum.as_str().trim_start_matches(ALGORITHM))
}

/// Copies a file if it exists and has the digest. The error is one of the copy.
fn copied(from: &Path, to: &Path, sha256: ContentDigest) -> io::Result<bool> {
    let Ok(from) = open(from, READ, Mode::empty()) else { return Ok(false) };
    remove(to)?;
    let size = fstat(&from).map_or(0, |found| u64::try_from(found.st_size).unwrap_or(0));
    leave_room(to.parent().unwrap_or(to), size)?;
    let mut to = create(to)?;
    let mut unwritten = None;
    let read = read_file(from, u64::MAX, |piece| {
        to.write_all(piece).inspect_err(|error| unwritten = error.raw_os_error())
    });
    if let Some(error) = unwritten {
        return Err(io::Error::from_raw_os_error(error));
    }
    to.sync_all()?;
    Ok(read.is_ok_and(|content| content.sha256 == sha256))
}

/// Writes a new file, durably once its directory is synced.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Makes `link` point to `name` beside it, in one step, by way of the path `new`.
fn point(link: &Path, name: &Path, new: &Path) -> io::Result<()> {
    remove(new)?;
    symlink(name, new)?;
    fs::rename(new, link)
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Makes a directory that only its owner may enter. A link there, or a directory of another user,
/// is replaced: the link's target and that user's files are not ours to change.
fn make_directory(path: &Path) -> io::Result<()> {
    let make = || DirBuilder::new().mode(0o700).create(path);
    match make() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match open_ours(path) {
            Some(directory) => directory.set_permissions(fs::Permissions::from_mode(0o700)),
            None => {
                remove(path)?;
                make()
            }
        },
        made => made,
    }
}

/// Opens the directory itself, if it belongs to the manager's user.
fn open_ours(path: &Path) -> Option<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let directory = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let owner = directory.metadata().ok()?.uid();
    (owner == nix::unistd::geteuid().as_raw()).then_some(directory)
}

/// Removes whatever is there, if anything is.
fn remove(path: &Path) -> io::Result<()> {
    Ok(files::remove_tree(path)?)
}

/// Bytes that kept configs leave free on their file system: journal and certificate are written
/// there, too, and without the journal no stop is accepted.
const RESERVE: u64 = 128 * 1024;

/// There is no room for a file of this size beside the reserve.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} KiB are free there, a file of {} KiB is to be kept, and {} KiB are left for the journal; make \
     the state directory larger: five times the config and 1 MiB",
    free / 1024, size.div_ceil(1024), RESERVE / 1024
)]
struct NoRoom {
    free: u64,
    size: u64,
}

/// Fails if a file of this size in this directory would take of the reserve.
fn leave_room(directory: &Path, size: u64) -> io::Result<()> {
    let volume = statvfs(directory)?;
    let free = volume.blocks_available().saturating_mul(volume.fragment_size());
    // Some file systems do not say what they have.
    if volume.blocks() > 0 && free < size.saturating_add(RESERVE) {
        return Err(io::Error::new(io::ErrorKind::StorageFull, NoRoom { free, size }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_its_place_is_replaced_and_what_it_points_to_stays() {
        let directory = tempfile::tempdir().unwrap();
        let other = directory.path().join("other");
        DirBuilder::new().mode(0o755).create(&other).unwrap();
        fs::write(other.join("file"), "").unwrap();
        let path = directory.path().join("configs");
        symlink(&other, &path).unwrap();
        make_directory(&path).unwrap();
        make_directory(&path).unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_dir());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        assert_eq!(fs::metadata(&other).unwrap().permissions().mode() & 0o777, 0o755);
        assert!(other.join("file").exists());
    }
}
