//! The engine's directory for temporary files: made by the manager, emptied between runs.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{self, Mutex, PoisonError};

use crate::files;

/// The directory's name. It is fixed, so that the files of an earlier container are found and
/// removed.
const NAME: &str = "stayput-engine";
/// Variables from which the engines take the directory. Without them, each start makes a new
/// directory in `/tmp`, which is never removed.
const VARIABLES: [&str; 2] = ["ES_TMPDIR", "OPENSEARCH_TMPDIR"];

/// Why the directory is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum TempDirError {
    /// The directory cannot be made or opened, belongs to another user, or another manager uses it.
    #[error(
        "cannot use {} for temporary files: {source}; give --tmp-dir a directory that this manager \
         alone may write to, or leave the option out",
        path.display()
    )]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Something in the directory could not be deleted; everything else was.
    #[error("cannot delete everything in {}: {source}; remove the rest by hand", path.display())]
    NotEmptied {
        /// The directory.
        path: PathBuf,
        /// The first error of the system.
        source: io::Error,
    },
}

/// A directory inside `--tmp-dir` that is the engine's own.
///
/// The mode is 0700 if the manager is not root: then the engine has the same uid. As root the mode
/// is 1777, like `/tmp`: the entrypoint changes to a uid that is not known before.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
    /// Held open and locked while the manager lives, so that no second manager empties it.
    lock: Mutex<Option<File>>,
}

impl TempDir {
    /// The directory inside `parent`; nothing is touched before [`prepare`](Self::prepare).
    pub fn new(parent: &Path) -> Self {
        Self { path: parent.join(NAME), lock: Mutex::new(None) }
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The variables to set in the engine's environment.
    pub fn variables(&self) -> impl Iterator<Item = (OsString, Option<OsString>)> + '_ {
        VARIABLES.into_iter().map(|name| (name.into(), Some(self.path.clone().into())))
    }

    /// True while the directory is being made or emptied.
    pub fn is_busy(&self) -> bool {
        matches!(self.lock.try_lock(), Err(sync::TryLockError::WouldBlock))
    }

    /// Makes the directory, or empties it if it exists. Blocks on the disk; call it between runs.
    ///
    /// Nothing outside is deleted: symbolic links are removed and not followed, and other file
    /// systems mounted inside are left alone, even if the engine moves files at the same time.
    ///
    /// One call waits for the other, so that an aborted start does not empty the directory of the
    /// next one.
    ///
    /// # Errors
    /// See [`TempDirError`]; if the directory is only not empty, the engine can start with it.
    pub fn prepare(&self) -> Result<(), TempDirError> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = self
            .usable(&mut lock)
            .map_err(|source| TempDirError::Unusable { path: self.path.clone(), source })?;
        files::empty_directory(directory.as_fd()).map_err(|errno| TempDirError::NotEmptied {
            path: self.path.clone(),
            source: errno.into(),
        })
    }

    /// Makes or finds the directory and locks it.
    fn usable(&self, lock: &mut Option<File>) -> io::Result<File> {
        match DirBuilder::new().mode(0o700).create(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let directory = self.open()?;
        lock_for_us(lock, &directory)?;
        // Set afterwards: the umask, which is the engine's, narrows the mode of a new directory.
        let mode = if nix::unistd::geteuid().is_root() { 0o1777 } else { 0o700 };
        fs::File::set_permissions(&directory, Permissions::from_mode(mode))?;
        Ok(directory)
    }

    /// Opens the directory itself, and checks that it belongs to the manager's uid and is no link.
    fn open(&self) -> io::Result<File> {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let directory = OpenOptions::new().read(true).custom_flags(flags).open(&self.path)?;
        if directory.metadata()?.uid() != nix::unistd::geteuid().as_raw() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "it belongs to another user",
            ));
        }
        Ok(directory)
    }
}

/// Locks the directory, unless this manager has locked it already.
fn lock_for_us(lock: &mut Option<File>, directory: &File) -> io::Result<()> {
    let identity = |file: &File| file.metadata().map(|found| (found.dev(), found.ino()));
    if let Some(held) = lock.as_ref()
        && identity(held)? == identity(directory)?
    {
        return Ok(());
    }
    let file = directory.try_clone()?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another stayput uses it, and each needs its own",
        )),
        // If the file system has no locks, the engine still starts.
        Ok(()) | Err(TryLockError::Error(_)) => {
            *lock = Some(file);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn is_emptied_without_following_links() {
        let parent = tempfile::tempdir().unwrap();
        let outside = parent.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("precious"), "1").unwrap();
        let engine = TempDir::new(parent.path());
        engine.prepare().unwrap();
        fs::create_dir_all(engine.path().join("a/b/.c")).unwrap();
        fs::write(engine.path().join("a/b/.c/file"), "x").unwrap();
        symlink(&outside, engine.path().join("a/link")).unwrap();
        symlink(outside.join("precious"), engine.path().join("file-link")).unwrap();
        symlink("/no/such", engine.path().join("dangling")).unwrap();

        engine.prepare().unwrap();

        assert_eq!(fs::read_dir(engine.path()).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(outside.join("precious")).unwrap(), "1");
    }

    #[test]
    fn a_link_in_its_place_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let outside = parent.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("precious"), "1").unwrap();
        let engine = TempDir::new(parent.path());
        symlink(&outside, engine.path()).unwrap();

        let error = engine.prepare().unwrap_err().to_string();

        assert!(error.contains("stayput-engine"), "{error}");
        assert!(outside.join("precious").exists());
    }

    #[test]
    fn its_mode_does_not_depend_on_the_umask() {
        let parent = tempfile::tempdir().unwrap();
        let engine = TempDir::new(parent.path());
        engine.prepare().unwrap();
        let mode = fs::metadata(engine.path()).unwrap().mode() & 0o7777;
        assert_eq!(mode, if nix::unistd::geteuid().is_root() { 0o1777 } else { 0o700 });
    }

    #[test]
    fn nesting_without_end_is_left_and_told() {
        let parent = tempfile::tempdir().unwrap();
        let engine = TempDir::new(parent.path());
        engine.prepare().unwrap();
        fs::create_dir_all(engine.path().join("d/".repeat(files::MAX_DEPTH + 2))).unwrap();
        fs::write(engine.path().join("file"), "x").unwrap();
        assert!(matches!(engine.prepare(), Err(TempDirError::NotEmptied { .. })));
        assert!(!engine.path().join("file").exists(), "everything else is deleted");
    }

    #[test]
    fn two_managers_do_not_share_it() {
        let parent = tempfile::tempdir().unwrap();
        let (one, two) = (TempDir::new(parent.path()), TempDir::new(parent.path()));
        one.prepare().unwrap();
        fs::write(one.path().join("file"), "x").unwrap();
        assert!(two.prepare().unwrap_err().to_string().contains("another stayput"));
        assert!(one.path().join("file").exists());
        one.prepare().unwrap();
    }

    #[test]
    fn a_missing_parent_is_told() {
        let error = TempDir::new(Path::new("/no/such")).prepare().unwrap_err().to_string();
        assert!(error.contains("/no/such/stayput-engine"), "{error}");
    }
}
