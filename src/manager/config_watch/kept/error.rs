//! Why a generation is not kept, or cannot be used.

use std::io;
use std::path::PathBuf;

use nix::errno::Errno;

use crate::worker::WorkPanicked;
use stayput_api::checksum::{InvalidChecksum, InvalidDigest};

/// Why there is no kept generation, or why a new one is not kept.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// The kept generation cannot be used.
    #[error(
        "the kept config in {} cannot be used: {source}; remove it, a new one is kept when the \
         engine is next ready",
        path.display()
    )]
    Unusable {
        /// The directory of the kept generation.
        path: PathBuf,
        /// The fault of the generation's record.
        source: RecordError,
    },
    /// The new generation cannot be written. The earlier ones are still kept.
    #[error("the config cannot be kept in {}: {source}", root.display())]
    Unwritten {
        /// The directory of the kept generations.
        root: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The content that the engine was started with does not exist any more.
    #[error(
        "the config cannot be kept: {} was changed since the engine started, where it is staged and \
         where it is mounted",
        file.display()
    )]
    Changed {
        /// Path of the file in the config.
        file: PathBuf,
    },
    /// The thread that keeps generations has not done the work.
    #[error("the config was not kept: {0}")]
    NotDone(#[from] WorkPanicked),
}

/// A fault in the record of a kept generation.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The record cannot be opened.
    #[error("{}", .0.desc())]
    Open(#[source] Errno),
    /// The record cannot be read to its end, with the reason.
    #[error("{0}")]
    Read(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The file is not a record.
    #[error(transparent)]
    Syntax(#[from] serde_json::Error),
    /// Another version of stayput wrote the record.
    #[error("another version of stayput wrote it")]
    OtherVersion,
    /// The checksum in the record is malformed.
    #[error(transparent)]
    Checksum(#[from] InvalidChecksum),
    /// The digest of a file in the record is malformed.
    #[error(transparent)]
    Digest(#[from] InvalidDigest),
    /// The record lists other files than the ones that were kept.
    #[error("its list of files does not have its checksum")]
    OtherFiles,
}
