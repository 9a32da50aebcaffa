//! A copy of a shard on disk: a file for each document.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::document::{Age, Document};
use crate::engine::data;

/// An open copy.
pub(super) struct Shard {
    directory: PathBuf,
    next_seq_no: u64,
}

impl Shard {
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
        read(&self.directory, id)
    }

    /// Stores a document, unless a newer one with that id exists.
    pub(super) fn put(&mut self, document: &Document) -> io::Result<()> {
        self.next_seq_no = self.next_seq_no.max(document.seq_no + 1);
        if self.get(&document.id)?.is_some_and(|old| old.age() > document.age()) {
            return Ok(());
        }
        data::replace(&self.directory.join(&document.id), &serde_json::to_vec(document)?)
    }

    /// All documents.
    pub(super) fn all(&self) -> io::Result<Vec<Document>> {
        list(&self.directory, usize::MAX).map(|(_, documents)| documents)
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
            data::replace(&self.directory.join(&document.id), &content)?;
        }
        Ok(())
    }
}

/// A document of the copy in `directory`.
pub(super) fn read(directory: &Path, id: &str) -> io::Result<Option<Document>> {
    let content = data::existing(&directory.join(id))?;
    content.map(|content| Ok(serde_json::from_slice(&content)?)).transpose()
}

/// How many documents the copy in `directory` has, and the first `most` of them.
pub(super) fn list(directory: &Path, most: usize) -> io::Result<(usize, Vec<Document>)> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((0, Vec::new())),
        Err(error) => return Err(error),
    };
    let mut ids = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        // Files that are being written have names that cannot be document ids.
        if data::is_document_id(&name) {
            ids.push(name);
        }
    }
    ids.sort();
    let documents = ids.iter().take(most).filter_map(|id| read(directory, id).transpose());
    Ok((ids.len(), documents.collect::<io::Result<_>>()?))
}
