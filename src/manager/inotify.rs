//! inotify for the reactor, and which directories decide where a path leads.
//!
//! Used for the mounted config and for keys. Each has its own instance, watches and mask.

mod chain;

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::inotify::{InitFlags, Inotify};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub(crate) use chain::chain;

/// An inotify instance. nix implements only the newer trait, tokio asks for the older one.
#[derive(Debug)]
pub(crate) struct Source(pub(crate) Inotify);

impl AsRawFd for Source {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// Becomes readable with an event.
pub(crate) type Events = AsyncFd<Arc<Source>>;

/// Makes an instance without watches.
pub(crate) fn open() -> io::Result<Events> {
    let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
    // Its successor is an `unsafe fn`, which only `process` may call. Its requirement is met: the
    // source owns its descriptor, never replaces it, and lives as long as the AsyncFd.
    #[allow(deprecated, reason = "only the module `process` may use unsafe")]
    AsyncFd::with_interest(Arc::new(Source(inotify)), Interest::READABLE)
}

/// Reason why `what` cannot be watched at all, and what to do.
pub(crate) fn unavailable(what: &str, error: &io::Error) -> String {
    if error.raw_os_error() == Some(Errno::EMFILE as i32) {
        return format!(
            "{what} cannot be watched: this node's limit fs.inotify.max_user_instances (or our \
             limit of open files) is reached; raise it"
        );
    }
    format!("{what} cannot be watched: {error}")
}

/// Reason why a path cannot be watched, and what to do.
pub(crate) fn unwatched(path: &std::path::Path, error: Errno) -> String {
    let path = path.display();
    match error {
        Errno::ENOSPC => format!(
            "{path} cannot be watched: this node's limit fs.inotify.max_user_watches is reached; \
             raise it"
        ),
        other => format!("{path} cannot be watched: {}", other.desc()),
    }
}
