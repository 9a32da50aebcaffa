//! `path.data`: the node lock and the documents.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Refusal;

/// The data path, ours alone while this lives.
pub(super) struct Data {
    documents: PathBuf,
    /// Held, never read: closing it gives up the lock, and so does any death of the process.
    _lock: File,
}

impl Data {
    /// Takes the node lock, which the previous engine holds until it is really gone.
    pub(super) fn lock(path: &Path) -> Result<Self, Refusal> {
        let open = || {
            let documents = path.join("docs");
            fs::create_dir_all(&documents)?;
            // Not cleaned up at the end, as with the real engines: the lock counts, not the file.
            let lock = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(path.join("node.lock"))?;
            io::Result::Ok((documents, lock))
        };
        let (documents, lock) = open().map_err(|error| {
            Refusal::failed(format!("cannot use path.data {}: {error}", path.display()))
        })?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { documents, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(Refusal::failed(format!(
                "failed to obtain node locks, tried [{}]; maybe these locations are not writable \
                 or multiple nodes were started on the same data path?",
                path.display()
            ))),
            Err(TryLockError::Error(error)) => Err(Refusal::failed(format!(
                "failed to obtain node locks, tried [{}]: {error}",
                path.display()
            ))),
        }
    }

    /// Keeps a document; whether it is new.
    pub(super) fn put(&self, id: &str, content: &[u8]) -> io::Result<bool> {
        let path = self.documents.join(id);
        let new = !path.exists();
        // A name that no document can have, unique per writer.
        let temporary = self.documents.join(format!(".{:?}", std::thread::current().id()));
        let mut file = File::create(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(temporary, path)?;
        Ok(new)
    }

    /// A kept document, `None` if there is none of that name.
    pub(super) fn get(&self, id: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.documents.join(id)) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether `id` can name a document: it becomes a file name.
pub(super) fn is_document_id(id: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !id.is_empty() && id.len() <= 128 && id.bytes().all(allowed)
}
