//! `path.data`: the node lock, the node's id, the cluster's state and the documents.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Refusal;

/// The data path, locked by this process while this exists.
pub(super) struct Data {
    root: PathBuf,
    documents: PathBuf,
    /// Held, never read: closing it releases the lock, and so does any death of the process.
    _lock: File,
}

impl Data {
    /// Takes the node lock; the previous engine holds it until it has really ended.
    pub(super) fn lock(path: &Path) -> Result<Self, Refusal> {
        let open = || {
            let documents = path.join("docs");
            fs::create_dir_all(&documents)?;
            // Not removed at the end, as in the real engines: the lock counts, not the file.
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
            Ok(()) => Ok(Self { root: path.to_owned(), documents, _lock: lock }),
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

    /// Stores a document of this node alone; returns whether it is new.
    pub(super) fn put(&self, id: &str, content: &[u8]) -> io::Result<bool> {
        let path = self.documents.join(id);
        let new = !path.exists();
        replace(&path, content)?;
        Ok(new)
    }

    /// A document of this node alone, `None` if there is none of that name.
    pub(super) fn get(&self, id: &str) -> io::Result<Option<Vec<u8>>> {
        existing(&self.documents.join(id))
    }

    /// The node's id: `first` or a random one when the data path is used for the first time.
    pub(super) fn node_id(&self, first: Option<&str>) -> io::Result<String> {
        let path = self.root.join("node.id");
        if let Some(id) = existing(&path)? {
            return Ok(String::from_utf8_lossy(&id).into_owned());
        }
        let id = first.map_or_else(random_id, |first| Ok(first.to_owned()))?;
        replace(&path, id.as_bytes())?;
        Ok(id)
    }

    /// The cluster's state as it was last accepted here.
    pub(super) fn read_state(&self) -> io::Result<Option<Vec<u8>>> {
        existing(&self.root.join("state.json"))
    }

    /// Stores the cluster's state.
    pub(super) fn write_state(&self, content: &[u8]) -> io::Result<()> {
        replace(&self.root.join("state.json"), content)
    }

    /// The directory of a shard's copy here.
    pub(super) fn shard(&self, index_uuid: &str, number: usize) -> PathBuf {
        self.root.join("indices").join(index_uuid).join(number.to_string())
    }
}

/// A file's content, `None` if there is no such file.
pub(super) fn existing(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the content of the file, completely or, after a crash, not at all.
pub(super) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    // A name that cannot be a document id, unique per writer.
    let temporary = path.with_file_name(format!(".{:?}", std::thread::current().id()));
    let mut file = File::create(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(temporary, path)
}

/// A random id in the format of the engines: 22 characters, safe in a path and in a URL.
pub(super) fn random_id() -> io::Result<String> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut bytes = [0; 22];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte & 63)])).collect())
}

/// Whether `id` can name a document: it becomes a file name.
pub(super) fn is_document_id(id: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !id.is_empty() && id.len() <= 128 && id.bytes().all(allowed)
}

/// Which shard, also after its index was deleted and made anew.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ShardId {
    pub(crate) uuid: String,
    pub(crate) number: usize,
}

/// A document as every copy has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Document {
    pub(crate) id: String,
    pub(crate) version: u64,
    pub(crate) seq_no: u64,
    pub(crate) primary_term: u64,
    pub(crate) source: Value,
}

/// Primary term and sequence number: of two documents with one id the greater is the newer.
pub(crate) type Age = (u64, u64);

impl Document {
    /// When it was written, in the primary's time.
    fn age(&self) -> Age {
        (self.primary_term, self.seq_no)
    }
}

/// An open copy of a shard on disk: a file for each document.
pub(super) struct StoredShard {
    directory: PathBuf,
    next_seq_no: u64,
}

impl StoredShard {
    /// Opens the copy in `directory`, or creates one.
    pub(super) fn open(directory: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&directory)?;
        let mut shard = Self { directory, next_seq_no: 0 };
        let newest = shard.all()?.into_iter().map(|document| document.seq_no).max();
        shard.next_seq_no = newest.map_or(0, |newest| newest + 1);
        Ok(shard)
    }

    /// The sequence number of the next write.
    pub(super) fn next_seq_no(&self) -> u64 {
        self.next_seq_no
    }

    /// A document.
    pub(super) fn get(&self, id: &str) -> io::Result<Option<Document>> {
        read_document(&self.directory, id)
    }

    /// Stores a document, unless a newer one with that id exists.
    pub(super) fn put(&mut self, document: &Document) -> io::Result<()> {
        self.next_seq_no = self.next_seq_no.max(document.seq_no + 1);
        if self.get(&document.id)?.is_some_and(|old| old.age() > document.age()) {
            return Ok(());
        }
        replace(&self.directory.join(&document.id), &serde_json::to_vec(document)?)
    }

    /// All documents.
    pub(super) fn all(&self) -> io::Result<Vec<Document>> {
        list_documents(&self.directory, usize::MAX).map(|(_, documents)| documents)
    }

    /// Keeps these documents and those that were written from `since` on, and no others.
    pub(super) fn become_copy_of(&mut self, since: Age, documents: &[Document]) -> io::Result<()> {
        self.next_seq_no = self.next_seq_no.max(since.1);
        let theirs: BTreeSet<&str> = documents.iter().map(|it| it.id.as_str()).collect();
        let mut newer = BTreeSet::new();
        for mine in self.all()? {
            if mine.age() >= since {
                newer.insert(mine.id);
            } else if !theirs.contains(mine.id.as_str()) {
                fs::remove_file(self.directory.join(&mine.id))?;
            }
        }
        let missing = documents.iter().filter(|document| !newer.contains(&document.id));
        for document in missing {
            let content = serde_json::to_vec(document)?;
            replace(&self.directory.join(&document.id), &content)?;
        }
        Ok(())
    }
}

/// A document of the copy in `directory`.
pub(super) fn read_document(directory: &Path, id: &str) -> io::Result<Option<Document>> {
    let content = existing(&directory.join(id))?;
    content.map(|content| Ok(serde_json::from_slice(&content)?)).transpose()
}

/// How many documents the copy in `directory` has, and the first `most` of them.
pub(super) fn list_documents(directory: &Path, most: usize) -> io::Result<(usize, Vec<Document>)> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((0, Vec::new())),
        Err(error) => return Err(error),
    };
    let mut ids = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        // Files that are being written have names that cannot be document ids.
        if is_document_id(&name) {
            ids.push(name);
        }
    }
    ids.sort();
    let documents = ids.iter().take(most).filter_map(|id| read_document(directory, id).transpose());
    Ok((ids.len(), documents.collect::<io::Result<_>>()?))
}
