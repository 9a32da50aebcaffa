//! Messages about a fault of a file or directory, and what to do. Each continues after the path.

use nix::errno::Errno;

pub(super) const NOT_REGULAR: &str =
    "is not a regular file: a config directory must hold only files and directories";

pub(super) const LOOP: &str = "leads back into itself, or is nested too deeply: remove the link";

/// Message for a file or directory that could not be opened or read.
pub(super) fn unreadable(error: Errno) -> String {
    match error {
        Errno::EACCES | Errno::EPERM => format!(
            "cannot be read by uid {}: let it, with fsGroup, or with defaultMode of the volume",
            nix::unistd::geteuid()
        ),
        Errno::ENOTDIR => "is not a directory".to_owned(),
        other => format!("cannot be read: {}", other.desc()),
    }
}

/// Message for a link that could not be followed.
pub(super) fn broken_link(error: Errno) -> String {
    match error {
        Errno::ELOOP => "is a link that leads back to itself".to_owned(),
        Errno::ENOENT => "is a link to nothing".to_owned(),
        Errno::EXDEV => "is a link out of the config directory: put the file there, or give the \
                         directory it is in to --config as well"
            .to_owned(),
        Errno::ENXIO => NOT_REGULAR.to_owned(),
        Errno::ENOSYS | Errno::EPERM => format!(
            "is a link, and this kernel or its seccomp profile does not let us follow links safely \
             (openat2: {}): put the file there",
            error.desc()
        ),
        other => unreadable(other),
    }
}
