//! The kept copy of the generation that last became ready. **It holds the config's secrets**, so
//! its files are 0600 in a directory of 0700, and it is only kept where that was asked for.
//!
//! ```text
//! record.json    what is kept: names, digests, permissions, and their checksum
//! <checksum>/0…  the contents
//! ```
//! The rename of `record.json` is the one moment at which another generation is the kept one.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use serde::{Deserialize, Serialize};

use super::content::{self, READ};
use super::generation::Access;
use super::stage::Item;
use stayput_api::checksum::{Checksum, ContentDigest, FileDigest};

const RECORD: &str = "record.json";
const NEW_RECORD: &str = "record.json.new";
const SCHEMA: u32 = 1;
/// Room for the most files there may be, with long names.
const LARGEST_RECORD: u64 = 4 * 1024 * 1024;

/// What is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
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

/// A file to keep, and the places where its content may be found.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) dir: Option<String>,
    pub(super) relative: PathBuf,
    pub(super) sha256: ContentDigest,
    pub(super) access: Access,
    pub(super) sources: Vec<PathBuf>,
}

impl Record {
    /// The record in this directory, if one is kept.
    ///
    /// # Errors
    /// What is wrong with it and what to do.
    pub(super) fn load(root: &Path) -> Result<Option<Self>, String> {
        let path = root.join(RECORD);
        let damaged = |why: String| {
            format!(
                "the last good config in {} cannot be used: {why}; remove it, a new one is kept \
                 when the engine is next ready",
                root.display()
            )
        };
        let fd = match open(&path, READ | OFlag::O_NOFOLLOW, Mode::empty()) {
            Ok(fd) => fd,
            Err(nix::errno::Errno::ENOENT) => return Ok(None),
            Err(error) => return Err(damaged(error.desc().to_owned())),
        };
        let mut text = Vec::new();
        content::read(fd, LARGEST_RECORD, |piece| text.write_all(piece))
            .map_err(|error| damaged(format!("{error:?}")))?;
        let record: Self =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if record.schema != SCHEMA {
            return Err(damaged("another version of stayput wrote it".to_owned()));
        }
        if record.recomputed()?.as_str() != record.checksum {
            return Err(damaged("its list of files does not have its checksum".to_owned()));
        }
        Ok(Some(record))
    }

    /// Checksum of the kept generation.
    pub(super) fn checksum(&self) -> Result<Checksum, String> {
        Checksum::parse(&self.checksum).map_err(|error| error.to_string())
    }

    /// Its files by name of their config directory, ready to be staged: staging compares every
    /// content with its digest, and nothing changes before all have passed.
    pub(super) fn items(&self, root: &Path) -> Result<Vec<(Option<String>, Item)>, String> {
        let contents = contents(root, &self.checksum()?);
        self.files
            .iter()
            .enumerate()
            .map(|(index, kept)| {
                let item = Item {
                    relative: kept.relative.clone(),
                    source: contents.join(index.to_string()),
                    sha256: kept.digest()?,
                    access: kept.access,
                };
                Ok((kept.dir.clone(), item))
            })
            .collect()
    }

    fn recomputed(&self) -> Result<Checksum, String> {
        let files: Vec<_> = self
            .files
            .iter()
            .map(|kept| Ok(FileDigest { path: kept.listed(), sha256: kept.digest()? }))
            .collect::<Result<_, String>>()?;
        Ok(Checksum::of_files(&files))
    }
}

impl Kept {
    fn listed(&self) -> Vec<u8> {
        let listed = match &self.dir {
            Some(dir) => Path::new(dir).join(&self.relative),
            None => self.relative.clone(),
        };
        listed.as_os_str().as_bytes().to_owned()
    }

    fn digest(&self) -> Result<ContentDigest, String> {
        self.sha256
            .parse()
            .map_err(|()| format!("{:?} is not a SHA-256 in hexadecimal", self.sha256))
    }
}

/// Keeps a generation, instead of the one before it.
///
/// # Errors
/// Why not; the one before it is still kept then.
pub(super) fn keep(
    root: &Path,
    checksum: &Checksum,
    candidates: &[Candidate],
) -> Result<(), String> {
    if Record::load(root).is_ok_and(|kept| kept.is_some_and(|r| r.checksum == checksum.as_str())) {
        return Ok(());
    }
    let failed = |error: io::Error| {
        format!("the config cannot be kept as last good in {}: {error}", root.display())
    };
    make_directory(root).map_err(failed)?;
    let contents = contents(root, checksum);
    remove(&contents).map_err(failed)?;
    make_directory(&contents).map_err(failed)?;
    for (index, candidate) in candidates.iter().enumerate() {
        let to = contents.join(index.to_string());
        let mut found = false;
        for from in &candidate.sources {
            found = found || copied(from, &to, candidate.sha256).map_err(failed)?;
        }
        if !found {
            return Err(format!(
                "the config cannot be kept as last good: {} was changed since the engine started, \
                 where it is staged and where it is mounted",
                candidate.relative.display()
            ));
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
    (|| -> io::Result<()> {
        File::open(&contents)?.sync_all()?;
        let new = root.join(NEW_RECORD);
        remove(&new)?;
        let mut file = create(&new)?;
        file.write_all(&serde_json::to_vec(&record)?)?;
        file.sync_all()?;
        fs::rename(new, root.join(RECORD))?;
        File::open(root)?.sync_all()?;
        sweep(root, &contents)
    })()
    .map_err(failed)
}

/// Removes generations that are no longer, or never became, the kept one.
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

/// Copies a file if it is there and has the digest. An error is one of the copy.
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
