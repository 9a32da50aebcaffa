//! Why a config cannot be staged.

use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::unistd::geteuid;

use super::super::content::Unread;

/// Why a generation could not be staged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A source does not, or no longer, have the verified content.
    #[error("{} is not what was verified: {source}", file.display())]
    Source { file: PathBuf, source: Unverified },
    #[error("cannot stage into {}: {source}", target.display())]
    Target { target: PathBuf, source: TargetFault },
}

/// How a source differs from what was verified.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unverified {
    #[error("its content is different")]
    OtherContent,
    #[error(transparent)]
    Unread(#[from] Unread),
}

/// A fault of a target, and what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TargetFault {
    #[error("it does not exist: mount a writable volume there, such as an emptyDir")]
    Missing,
    #[error("{}", remedy(*.0))]
    Unusable(#[source] Errno),
    #[error("{action}: {}", remedy(*.source))]
    Failed { action: String, source: Errno },
    #[error("{action}: {source}")]
    Unwritten { action: String, source: io::Error },
    /// A person must change what is in the target or what is to be staged.
    #[error("{0}")]
    Conflict(String),
    #[error(
        "its {name} {source}, so it is not known which files there are the engine's: remove \
             it, and every file there that an earlier config left"
    )]
    Manifest { name: &'static str, source: ManifestFault },
}

/// Why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManifestFault {
    #[error("cannot be read ({0})")]
    Syntax(#[source] serde_json::Error),
    #[error("was written by another version of stayput")]
    OtherVersion,
    #[error("lists files outside")]
    Outside,
}

/// The system's error, and what to do where that is known.
fn remedy(error: Errno) -> String {
    match error {
        Errno::EACCES | Errno::EPERM | Errno::EROFS => format!(
            "{}: uid {} must be able to write there; mount a writable volume there, such as an \
             emptyDir, that an init container fills with the image's files of this directory: an \
             empty one hides them",
            error.desc(),
            geteuid()
        ),
        Errno::ENOSPC | Errno::EDQUOT => {
            format!("{}: make room, or raise the volume's size limit", error.desc())
        }
        other => other.desc().to_owned(),
    }
}
