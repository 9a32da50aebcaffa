//! One kept generation: a directory with its contents and a record of what they are.

use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use serde::{Deserialize, Serialize};

use super::{OTHER_FILES, copied, make_directory, remove, sync, write as write_file};
use crate::config_watch::generation::{self, Permissions, READ, lossy};
use crate::config_watch::stage::Item;
use stayput_api::ConfigFile;
use stayput_api::checksum::{Checksum, ContentDigest, FileDigest};

const RECORD: &str = "record.json";
const SCHEMA: u32 = 1;
/// Large enough for the allowed number of files with long names.
const LARGEST_RECORD: u64 = 4 * 1024 * 1024;

/// A generation to keep.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) checksum: Checksum,
    pub(crate) files: Vec<StagedFile>,
}

/// A file to keep, and the paths where its content may be found.
#[derive(Debug, Clone)]
pub(crate) struct StagedFile {
    /// Name of its config directory.
    pub(crate) dir: Option<String>,
    pub(crate) relative: PathBuf,
    pub(crate) sha256: ContentDigest,
    pub(crate) access: Permissions,
    pub(crate) sources: Vec<PathBuf>,
}

/// A kept generation, with the digests in its record checked.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) checksum: Checksum,
    files: Vec<(Option<String>, Item)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    schema: u32,
    checksum: String,
    files: Vec<File>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct File {
    dir: Option<String>,
    relative: PathBuf,
    sha256: String,
    access: Permissions,
}

/// The path of a file below a config directory, as it is listed.
fn listed_path(dir: Option<&str>, relative: &Path) -> Vec<u8> {
    let listed = match dir {
        Some(dir) => Path::new(dir).join(relative),
        None => relative.to_owned(),
    };
    listed.as_os_str().as_bytes().to_owned()
}

impl Kept {
    /// The generation that is kept in this directory, if it exists.
    ///
    /// # Errors
    /// The fault of its record.
    pub(super) fn load(dir: &Path) -> Result<Option<Self>, String> {
        let fd = match open(&dir.join(RECORD), READ | OFlag::O_NOFOLLOW, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::ENOENT) => return Ok(None),
            Err(error) => return Err(error.desc().to_owned()),
        };
        let mut text = Vec::new();
        generation::read_file(fd, LARGEST_RECORD, |piece| text.write_all(piece))
            .map_err(|error| error.to_string())?;
        let record: Record = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        if record.schema != SCHEMA {
            return Err("another version of stayput wrote it".to_owned());
        }
        let checksum = Checksum::parse(&record.checksum)?;
        let (mut listed, mut files) = (Vec::new(), Vec::new());
        for (index, file) in record.files.into_iter().enumerate() {
            let sha256 = file.sha256.parse()?;
            listed.push(FileDigest {
                path: listed_path(file.dir.as_deref(), &file.relative),
                sha256,
            });
            let source = dir.join(index.to_string());
            let File { dir, relative, access, .. } = file;
            files.push((dir, Item { relative, source, sha256, access }));
        }
        if Checksum::of_files(&listed) != checksum {
            return Err(OTHER_FILES.to_owned());
        }
        Ok(Some(Self { checksum, files }))
    }

    /// Files with the name of their config directory, ready to be staged: staging compares every
    /// content with its digest, and nothing changes before all have passed.
    pub(crate) fn files(&self) -> &[(Option<String>, Item)] {
        &self.files
    }

    /// Files as the status lists them, sorted by path.
    pub(crate) fn listed(&self) -> Vec<ConfigFile> {
        let listed = self.files.iter().map(|(dir, item)| ConfigFile {
            path: lossy(&listed_path(dir.as_deref(), &item.relative)),
            sha256: item.sha256.to_string(),
            live: false,
            formed_sha256: None,
        });
        let mut listed: Vec<ConfigFile> = listed.collect();
        listed.sort();
        listed
    }

    /// True if every content has the digest that the record says.
    pub(super) fn is_intact(&self) -> bool {
        self.files.iter().all(|(_, item)| {
            open(&item.source, READ, Mode::empty()).is_ok_and(|fd| {
                generation::read_file(fd, u64::MAX, |_| Ok(()))
                    .is_ok_and(|found| found.sha256 == item.sha256)
            })
        })
    }
}

/// Writes a generation to a new directory, and renames that to `dir`. Returns the first file whose
/// content does not exist any more: then nothing was kept.
pub(super) fn write(staged: &Staged, new: &Path, dir: &Path) -> io::Result<Option<PathBuf>> {
    remove(new)?;
    let written = write_new(staged, new, dir);
    if !matches!(written, Ok(None)) {
        // A part of a copy is of no use and takes room. The first error is the one to report.
        let _ = remove(new);
    }
    written
}

fn write_new(staged: &Staged, new: &Path, dir: &Path) -> io::Result<Option<PathBuf>> {
    make_directory(new)?;
    for (index, file) in staged.files.iter().enumerate() {
        let to = new.join(index.to_string());
        let mut found = false;
        for from in &file.sources {
            found = found || copied(from, &to, file.sha256)?;
        }
        if !found {
            return Ok(Some(file.relative.clone()));
        }
    }
    let files = staged.files.iter().map(|file| File {
        dir: file.dir.clone(),
        relative: file.relative.clone(),
        sha256: file.sha256.to_string(),
        access: file.access,
    });
    let record =
        Record { schema: SCHEMA, checksum: staged.checksum.to_string(), files: files.collect() };
    write_file(&new.join(RECORD), &serde_json::to_vec(&record)?)?;
    sync(new)?;
    // A damaged one of the same content.
    remove(dir)?;
    fs::rename(new, dir)?;
    Ok(None)
}
