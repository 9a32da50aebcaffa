//! The only caller of `wait`: collects ended children, the engine's and adopted orphans alike, and
//! finds out from the kernel whether any are left.

use std::mem::MaybeUninit;
use std::ptr;

use super::ExitStatus;

/// A child that has ended and is now gone from the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reaped {
    /// Pid of the child, free to be used again by the kernel from now on.
    pub pid: u32,
    /// Exit status of the child.
    pub status: ExitStatus,
}

/// Owns every wait of the manager. There must be only one.
#[derive(Debug, Default)]
pub struct Reaper(());

impl Reaper {
    pub fn new() -> Self {
        Self::default()
    }

    /// Collects every child that has ended, without blocking; no children at all is no error.
    ///
    /// Call it on each SIGCHLD and once after [`Signals::install`](super::Signals::install), and
    /// read it to the end: several deaths may come as one signal, and those that are left are not
    /// signalled again. It is an iterator, so that ten thousand orphans at once need no memory.
    pub fn reap(&mut self) -> impl Iterator<Item = Reaped> + '_ {
        std::iter::from_fn(next)
    }
}

fn next() -> Option<Reaped> {
    loop {
        let mut raw = 0;
        // Not nix's wrapper: for a status that has no name there (death by a realtime signal), it
        // returns an error after the zombie and its status are gone.
        // SAFETY: `raw` is a valid place for one c_int.
        let pid = unsafe { libc::waitpid(-1, ptr::from_mut(&mut raw), libc::WNOHANG) };
        // 0: children, but none has ended. -1: no children (ECHILD); WNOHANG is not interrupted.
        let Ok(pid @ 1..) = u32::try_from(pid) else { return None };
        if let Some(status) = ExitStatus::from_wait(raw) {
            return Some(Reaped { pid, status });
        }
        // Neither exit nor death: a traced child was stopped. It still lives; continue with the
        // next one.
    }
}

/// Report of the kernel about the children, without `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Children {
    /// None at all, so no descendant either: a process that lost its parent would be our child.
    None,
    /// At least one has ended and waits to be reaped. Nothing is known about the others.
    Ended,
    /// There are some, and none has ended.
    Alive,
}

/// Finds out whether there are children. Collects none.
pub(super) fn children() -> Children {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` is a place for one siginfo_t.
    if unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), flags) } != 0 {
        // ECHILD: the arguments are valid, and WNOHANG is not interrupted.
        return Children::None;
    }
    // SAFETY: all-zero is a valid siginfo_t, and waitid fills in the fields of a child that ended.
    match unsafe { info.assume_init().si_pid() } {
        0 => Children::Alive,
        _ => Children::Ended,
    }
}
