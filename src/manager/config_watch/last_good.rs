//! The kept copy of the generation that last became ready. **It holds the config's secrets**, so
//! its files are 0600 in a directory of 0700, and it is only kept if the user asked for it.
//!
//! ```text
//! record.json    what is kept: names, digests, permissions, and their checksum
//! <checksum>/0…  the contents
//! ```
//! The rename of `record.json` makes another generation the kept one, in one step.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use serde::{Deserialize, Serialize};

use super::content::{self, READ, Unread};
use super::generation::Access;
use super::stage::Item;
use crate::worker::WorkPanicked;
use stayput_api::checksum::{Checksum, ContentDigest, FileDigest, InvalidChecksum, InvalidDigest};

const RECORD: &str = "record.json";
const NEW_RECORD: &str = "record.json.new";
const SCHEMA: u32 = 1;
/// Large enough for the allowed number of files with long names.
const LARGEST_RECORD: u64 = 4 * 1024 * 1024;

/// Why there is no last good config, or why a new one is not kept.
#[derive(Debug, thiserror::Error)]
pub enum LastGoodError {
    /// What is kept cannot be used.
    #[error(
        "the last good config in {} cannot be used: {source}; remove it, a new one is kept when \
         the engine is next ready",
        root.display()
    )]
    Unusable {
        /// The directory of the kept config.
        root: PathBuf,
        /// What is wrong with it.
        source: RecordError,
    },
    /// The new one cannot be written. The one before it is still kept.
    #[error("the config cannot be kept as last good in {}: {source}", root.display())]
    Unwritten {
        /// The directory of the kept config.
        root: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The content that the engine was started with does not exist any more.
    #[error(
        "the config cannot be kept as last good: {} was changed since the engine started, where it \
         is staged and where it is mounted",
        file.display()
    )]
    Changed {
        /// Path of the file in the config.
        file: PathBuf,
    },
    /// The blocking task was not run.
    #[error("the config was not kept: {0}")]
    NotDone(#[from] WorkPanicked),
}

/// What is wrong with the record of the kept config.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It cannot be opened.
    #[error("{}", .0.desc())]
    Open(#[source] Errno),
    /// It cannot be read to its end: why.
    #[error("{0}")]
    Read(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It is not a record.
    #[error(transparent)]
    Syntax(#[from] serde_json::Error),
    /// Another version of stayput wrote it.
    #[error("another version of stayput wrote it")]
    OtherVersion,
    /// Its checksum is not one.
    #[error(transparent)]
    Checksum(#[from] InvalidChecksum),
    /// The digest of a file in it is not one.
    #[error(transparent)]
    Digest(#[from] InvalidDigest),
    /// The list of files is not the one that was kept.
    #[error("its list of files does not have its checksum")]
    OtherFiles,
}

/// What to keep if the engine becomes ready with it.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) checksum: Checksum,
    pub(super) candidates: Vec<Candidate>,
}

/// What is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    schema: u32,
    checksum: String,
    files: Vec<Kept>,
}

/// A kept file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    /// Name of its config directory.
    dir: Option<String>,
    relative: PathBuf,
    sha256: String,
    access: Access,
}

/// A file to keep, and the paths where its content may be found.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) dir: Option<String>,
    pub(super) relative: PathBuf,
    pub(super) sha256: ContentDigest,
    pub(super) access: Access,
    pub(super) sources: Vec<PathBuf>,
}

/// The kept generation, with its digests checked.
#[derive(Debug)]
pub(super) struct LastGood {
    pub(super) checksum: Checksum,
    files: Vec<(Option<String>, Item)>,
}

impl LastGood {
    /// What is kept in this directory, if anything.
    pub(super) fn load(root: &Path) -> Result<Option<Self>, LastGoodError> {
        load(root).map_err(|source| LastGoodError::Unusable { root: root.to_owned(), source })
    }

    /// Its files with the name of their config directory, ready to be staged: staging compares
    /// every content with its digest, and nothing changes before all have passed.
    pub(super) fn files(&self) -> &[(Option<String>, Item)] {
        &self.files
    }
}

fn load(root: &Path) -> Result<Option<LastGood>, RecordError> {
    let fd = match open(&root.join(RECORD), READ | OFlag::O_NOFOLLOW, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::ENOENT) => return Ok(None),
        Err(error) => return Err(RecordError::Open(error)),
    };
    let mut text = Vec::new();
    content::read(fd, LARGEST_RECORD, |piece| text.write_all(piece))
        .map_err(|error: Unread| RecordError::Read(error.into()))?;
    let record: Record = serde_json::from_slice(&text)?;
    if record.schema != SCHEMA {
        return Err(RecordError::OtherVersion);
    }
    let checksum = Checksum::parse(&record.checksum)?;
    let contents = contents(root, &checksum);
    let (mut listed, mut files) = (Vec::new(), Vec::new());
    for (index, kept) in record.files.into_iter().enumerate() {
        let sha256 = kept.sha256.parse()?;
        listed.push(FileDigest { path: kept.listed(), sha256 });
        let source = contents.join(index.to_string());
        let Kept { dir, relative, access, .. } = kept;
        files.push((dir, Item { relative, source, sha256, access }));
    }
    if Checksum::of_files(&listed) != checksum {
        return Err(RecordError::OtherFiles);
    }
    Ok(Some(LastGood { checksum, files }))
}

impl Kept {
    fn listed(&self) -> Vec<u8> {
        let listed = match &self.dir {
            Some(dir) => Path::new(dir).join(&self.relative),
            None => self.relative.clone(),
        };
        listed.as_os_str().as_bytes().to_owned()
    }
}

/// Keeps a generation, instead of the one before it.
///
/// # Errors
/// Why it is not kept; the generation before it is still kept then.
pub(super) fn keep(root: &Path, staged: &Staged) -> Result<(), LastGoodError> {
    let Staged { checksum, candidates } = staged;
    if LastGood::load(root).is_ok_and(|kept| kept.is_some_and(|kept| kept.checksum == *checksum)) {
        return Ok(());
    }
    let failed = |source| LastGoodError::Unwritten { root: root.to_owned(), source };
    let contents = contents(root, checksum);
    make_directory(root)
        .and_then(|()| remove(&contents))
        .and_then(|()| make_directory(&contents))
        .map_err(failed)?;
    for (index, candidate) in candidates.iter().enumerate() {
        let to = contents.join(index.to_string());
        let mut found = false;
        for from in &candidate.sources {
            found = found || copied(from, &to, candidate.sha256).map_err(failed)?;
        }
        if !found {
            return Err(LastGoodError::Changed { file: candidate.relative.clone() });
        }
    }
    let record = Record {
        schema: SCHEMA,
        checksum: checksum.to_string(),
        files: candidates
            .iter()
            .map(|candidate| Kept {
                dir: candidate.dir.clone(),
                relative: candidate.relative.clone(),
                sha256: candidate.sha256.to_string(),
                access: candidate.access,
            })
            .collect(),
    };
    switch(root, &contents, &record).map_err(failed)
}

/// Makes this record the kept one, durably, and removes the generation that was kept before.
fn switch(root: &Path, contents: &Path, record: &Record) -> io::Result<()> {
    File::open(contents)?.sync_all()?;
    let new = root.join(NEW_RECORD);
    remove(&new)?;
    let mut file = create(&new)?;
    file.write_all(&serde_json::to_vec(record)?)?;
    file.sync_all()?;
    fs::rename(new, root.join(RECORD))?;
    File::open(root)?.sync_all()?;
    sweep(root, contents)
}

/// Removes generations that are not the kept one, also unfinished ones.
fn sweep(root: &Path, contents: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if path != contents && path != root.join(RECORD) {
            remove(&path)?;
        }
    }
    Ok(())
}

fn contents(root: &Path, checksum: &Checksum) -> PathBuf {
    root.join(checksum.as_str().trim_start_matches("sha256:"))
}

/// Copies a file if it exists and has the digest. The error is one of the copy.
fn copied(from: &Path, to: &Path, sha256: ContentDigest) -> io::Result<bool> {
    let Ok(from) = open(from, READ, Mode::empty()) else { return Ok(false) };
    remove(to)?;
    let mut to = create(to)?;
    let mut unwritten = None;
    let read = content::read(from, u64::MAX, |piece| {
        to.write_all(piece).inspect_err(|error| unwritten = error.raw_os_error())
    });
    if let Some(error) = unwritten {
        return Err(io::Error::from_raw_os_error(error));
    }
    to.sync_all()?;
    Ok(read.is_ok_and(|content| content.sha256 == sha256))
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn make_directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700))
        }
        made => made,
    }
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
