//! The only caller of `wait`: collects ended children, the engine's and adopted orphans alike, and
//! asks the kernel whether any are left.

use std::mem::MaybeUninit;
use std::ptr;

use super::ExitStatus;

/// A child that has ended and is now gone from the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reaped {
    /// Its pid, free to be used again by the kernel from now on.
    pub pid: u32,
    /// How it ended.
    pub status: ExitStatus,
}

/// Owns every wait of the manager. Make one.
#[derive(Debug, Default)]
pub struct Reaper(());

impl Reaper {
    /// The reaper.
    pub fn new() -> Self {
        Self::default()
    }

    /// Collects every child that has ended, without blocking; no children at all is no error.
    ///
    /// Drain it on each SIGCHLD and once after [`Signals::install`](super::Signals::install): any
    /// number of deaths may come as one signal, and what is left over is not announced again.
    /// An iterator, so that ten thousand orphans at once need no memory.
    pub fn reap(&mut self) -> impl Iterator<Item = Reaped> + '_ {
        std::iter::from_fn(next)
    }
}

fn next() -> Option<Reaped> {
    loop {
        let mut raw = 0;
        // Not nix's wrapper: it turns a status it has no name for (death by a realtime signal) into
        // an error, after the zombie and its status are gone.
        // SAFETY: `raw` is a valid place for one c_int.
        let pid = unsafe { libc::waitpid(-1, ptr::from_mut(&mut raw), libc::WNOHANG) };
        // 0: children, but none has ended. -1: no children (ECHILD); WNOHANG is not interrupted.
        let Ok(pid @ 1..) = u32::try_from(pid) else { return None };
        if let Some(status) = ExitStatus::from_wait(raw) {
            return Some(Reaped { pid, status });
        }
        // Neither exit nor death: a traced child stopped. It lives on; go on with the next one.
    }
}

/// What the kernel reports of our children, without `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Children {
    /// None at all, and so no descendant: a process that lost its parent would be our child.
    None,
    /// At least one has ended and waits to be reaped. Nothing is known about the others.
    Ended,
    /// Some, and none has ended.
    Alive,
}

/// Asks the kernel whether we have children. Collects none.
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
