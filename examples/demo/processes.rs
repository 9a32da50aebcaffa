//! What `/proc` says about children, and the end of those that are still there.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

/// Pids of the children of `parent`, dead ones that nobody waited for included.
pub(crate) fn children_of(parent: Pid) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| parent_of(*pid) == Some(parent.as_raw()))
        .map(Pid::from_raw)
        .collect()
}

/// Waits, bounded, until `parent` has no child any more.
///
/// A process that was just killed takes a moment until its parent has collected it.
pub(crate) fn expect_childless(parent: Pid) -> Result<(), String> {
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        let left = children_of(parent);
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("processes that should be gone are left: {left:?}"));
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name stands in parentheses and may contain anything.
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

/// Kills and collects every descendant of this process; how many there were.
///
/// This process must be a child subreaper: then descendants always hang below one of its children,
/// and having no child means that nothing is left.
pub(crate) fn end_all() -> usize {
    let mut ended = 0;
    loop {
        for child in children_of(Pid::this()) {
            // One that has just died is as good.
            let _ = kill(child, Signal::SIGKILL);
        }
        match waitpid(None, None) {
            Ok(_) => ended += 1,
            Err(Errno::EINTR) => {}
            Err(_) => return ended,
        }
    }
}
