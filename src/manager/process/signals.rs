//! Signals sent to the manager, as a stream for its one task.

use std::io;
use std::os::unix::net::UnixStream;

use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Not handled, because they report a fault of our own (ignoring one would loop on the faulting
/// instruction), or cannot be handled at all.
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

/// Ignored in the manager. TTIN, TTOU: it writes its log to a terminal that it has handed to the
/// engine. PIPE, XFSZ: the kernel raises them when a write of *ours* fails, which the write's error
/// shows already; forwarded, a client that disconnects would kill the engine.
const IGNORED: [i32; 4] = [libc::SIGTTIN, libc::SIGTTOU, libc::SIGPIPE, libc::SIGXFSZ];

/// Receives every signal that can be handled, realtime ones included.
///
/// Built on handlers that wake a socket rather than on blocked signals: handlers vanish at exec by
/// themselves, and there is neither a thread nor a mask to be undone in the engine.
#[derive(Debug)]
pub struct Signals {
    delivery: SignalDelivery<AsyncFd<UnixStream>, SignalOnly>,
}

impl Signals {
    /// Installs the handlers and unblocks what the manager was started with blocked.
    /// Call it within the runtime, on its thread, before the first child; then [reap](super::Reaper)
    /// once, for children that ended before.
    ///
    /// # Errors
    /// No descriptors left, or the system refused a handler.
    pub fn install() -> io::Result<Self> {
        // signal-hook sets each handler before it has an action for it: a TERM that comes in
        // between would be lost. It is delivered by the last line instead.
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&SigSet::all()), None)?;
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        // SAFETY: the stream owns its descriptor, and nothing replaces or closes it in there.
        let read = unsafe { AsyncFd::register_with_interest(read, Interest::READABLE) }?;
        let delivery = SignalDelivery::with_pipe(read, write, SignalOnly, handled())?;
        for signal in IGNORED {
            // SAFETY: SIG_IGN is a valid disposition for these, and no code of ours runs on it.
            if unsafe { libc::signal(signal, libc::SIG_IGN) } == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
        }
        // Last: what is pending already finds its handler.
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
        Ok(Self { delivery })
    }

    /// Waits for signals and returns the numbers of those that came, each once: like the kernel's
    /// own, equal signals that come close together are one.
    ///
    /// Cancel-safe: what was not returned stays to be returned.
    pub async fn recv(&mut self) -> Vec<i32> {
        loop {
            match self.delivery.get_read().readable().await {
                // Cleared before the socket is drained: a signal that comes after this line makes
                // it readable anew.
                Ok(mut ready) => ready.clear_ready(),
                // The runtime shuts down and this task with it.
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
}
