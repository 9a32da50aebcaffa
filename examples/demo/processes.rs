//! Child processes: none may be left; processes that are left are ended.

use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use stayput_standin::harness::programs::{children, send};

use crate::error::Result;

/// Waits, up to a limit, until `parent` has no child any more.
///
/// A process that was just killed takes a moment until its parent has collected it.
pub(crate) fn expect_childless(parent: Pid) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        let left = children(parent.as_raw().unsigned_abs());
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("processes that should be gone are left: {left:?}").into());
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Kills and reaps every descendant of this process; returns how many there were.
///
/// This process must be a child subreaper: then, if it has no child, it has no descendant.
pub(crate) fn end_all() -> usize {
    let mut ended = 0;
    loop {
        for child in children(std::process::id()) {
            send(child, Signal::SIGKILL);
        }
        match waitpid(None, None) {
            Ok(_) => ended += 1,
            Err(Errno::EINTR) => {}
            Err(_) => return ended,
        }
    }
}
