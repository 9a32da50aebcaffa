//! Signals sent to the manager, as a stream for one task, and the only caller of `wait`.

use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::{io, ptr};

use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::ExitStatus;

/// Signals that are not handled: they report a fault of the manager itself (ignoring one would
/// repeat the faulting instruction for ever), or cannot be handled at all.
const FAULTS_AND_UNSTOPPABLE: [i32; 9] = [
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGABRT,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGKILL,
    libc::SIGSTOP,
];

/// Signals that the manager ignores. TTIN, TTOU: it writes its log to a terminal that now belongs to the
/// engine. PIPE, XFSZ: the kernel raises them when a write of the *manager* fails, and the error of the write
/// is enough. If they were forwarded, a client that disconnects would kill the engine.
const IGNORED: [i32; 4] = [libc::SIGTTIN, libc::SIGTTOU, libc::SIGPIPE, libc::SIGXFSZ];

/// Receives every signal that can be handled, realtime ones included.
///
/// Uses handlers that wake a socket instead of blocked signals: handlers disappear at exec, and
/// there is neither a thread nor a signal mask that the engine would inherit.
#[derive(Debug)]
pub struct Signals {
    delivery: SignalDelivery<AsyncFd<UnixStream>, SignalOnly>,
}

impl Signals {
    /// Blocks all signals in this thread, and in those that it makes: they wait for
    /// [`Self::install`], and no other thread receives one.
    pub fn block() {
        // Fails only for an invalid argument.
        let _ = SigSet::all().thread_block();
    }

    /// Installs the handlers, and unblocks the signals that were blocked when the manager was
    /// started. Call it within the runtime, on its thread, before the first child; then
    /// [reap](super::Reaper) once, for children that ended before.
    ///
    /// # Errors
    /// No descriptors left, or the system refused a handler.
    pub fn install() -> io::Result<Self> {
        // signal-hook sets each handler before there is an action for it, so a TERM in between
        // would be lost. Signals are blocked until the last line, which delivers it.
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&SigSet::all()), None)?;
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        // SAFETY: the stream owns its descriptor, and never replaces or closes it.
        let read = unsafe { AsyncFd::register_with_interest(read, Interest::READABLE) }?;
        let delivery = SignalDelivery::with_pipe(read, write, SignalOnly, handled())?;
        for signal in IGNORED {
            // SAFETY: SIG_IGN is a valid disposition for these, and no code of the manager runs on
            // them.
            if unsafe { libc::signal(signal, libc::SIG_IGN) } == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
        }
        // Last: a pending signal is delivered to its handler now.
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
        Ok(Self { delivery })
    }

    /// Sends the signals that were received and not returned yet to this process again. While they
    /// are blocked they wait, also for another program that is executed.
    pub fn send_again(&mut self) {
        for signal in self.delivery.pending() {
            // SAFETY: takes integers only. The signal was received, so it is a valid one.
            unsafe { libc::kill(libc::getpid(), signal) };
        }
    }

    /// Waits for signals and returns the numbers of those that came, each once: as in the kernel,
    /// equal signals that come close together are one.
    ///
    /// Cancel-safe: signals that were not returned are returned by the next call.
    pub async fn recv(&mut self) -> Vec<i32> {
        loop {
            match self.delivery.get_read().readable().await {
                // Cleared before the socket is drained: a signal that comes after this line makes
                // it readable again.
                Ok(mut ready) => ready.clear_ready(),
                // The runtime shuts down, and with it this task.
                Err(_) => std::future::pending().await,
            }
            let received: Vec<i32> = self.delivery.pending().collect();
            if !received.is_empty() {
                return received;
            }
        }
    }
}

/// Every signal the manager receives.
fn handled() -> impl Iterator<Item = i32> {
    // Numbers between 31 and SIGRTMIN belong to the C library.
    (1..=31)
        .chain(libc::SIGRTMIN()..=libc::SIGRTMAX())
        .filter(|signal| !FAULTS_AND_UNSTOPPABLE.contains(signal) && !IGNORED.contains(signal))
}

// The only caller of `wait`: collects ended children, the engine's and adopted orphans alike, and
// finds out from the kernel whether any are left.

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
        std::iter::from_fn(next_ended)
    }
}

/// How the children with these pids ended, found in what [`Reaper::reap`] returned: `None` for one that has
/// not ended, and for no pid. A pid is free once it is reaped, so an orphan may get it and be reaped right
/// after: the first counts.
pub fn statuses_of<const N: usize>(
    pids: [Option<u32>; N],
    reaped: impl Iterator<Item = Reaped>,
) -> [Option<ExitStatus>; N] {
    let mut statuses = [None; N];
    for Reaped { pid, status } in reaped {
        if let Some(n) = pids.iter().position(|wanted| *wanted == Some(pid)) {
            statuses[n].get_or_insert(status);
        }
    }
    statuses
}

fn next_ended() -> Option<Reaped> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receives_what_a_kubelet_or_a_person_may_send() {
        let handled: Vec<i32> = handled().collect();
        for signal in [1, 2, 3, 10, 12, 15, 17, 18, 20, 28, 30, libc::SIGRTMIN() + 3] {
            assert!(handled.contains(&signal), "{signal}");
        }
        for signal in FAULTS_AND_UNSTOPPABLE.iter().chain(&IGNORED) {
            assert!(!handled.contains(signal), "{signal}");
        }
    }

    #[test] // proves STOP-13
    fn of_children_with_one_pid_the_first_counts() {
        let ended = |pid, code| Reaped { pid, status: ExitStatus::Code(code) };
        let reaped = [ended(7, 0), ended(8, 3), ended(9, 1), ended(8, 9), ended(9, 0)];
        let statuses = statuses_of([Some(8), None, Some(6), Some(9)], reaped.into_iter());
        assert_eq!(statuses, [Some(ExitStatus::Code(3)), None, None, Some(ExitStatus::Code(1))]);
    }
}
