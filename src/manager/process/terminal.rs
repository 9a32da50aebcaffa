//! Gives a controlling terminal to the engine, so that `docker run -it … -- bash` has job control.

use std::io::IsTerminal;
use std::mem::MaybeUninit;
use std::ptr;

/// Releases the terminal if the manager leads its session, so that the child's new session can take
/// it. True if stdin is a terminal at all.
///
/// Does nothing if another process leads the session, such as a shell: the shell keeps its
/// terminal.
pub(super) fn release() -> bool {
    if !std::io::stdin().is_terminal() {
        return false;
    }
    let leads_session = nix::unistd::getsid(None) == Ok(nix::unistd::getpid());
    if leads_session {
        // Releasing it makes the kernel send HUP and CONT to the manager's process group. They are
        // not for the engine, so they are ignored meanwhile, and neither received nor passed on.
        let _hup = Ignored::new(libc::SIGHUP);
        let _cont = Ignored::new(libc::SIGCONT);
        // SAFETY: TIOCNOTTY takes no argument. It fails if stdin is not the controlling terminal (a
        // second launch); then there is nothing to release.
        unsafe { libc::ioctl(libc::STDIN_FILENO, libc::TIOCNOTTY) };
    }
    true
}

/// Makes stdin the controlling terminal of the session the caller has just made.
///
/// # Safety
/// Async-signal-safe; meant for the child between fork and exec. If it fails (the terminal belongs
/// to another session), the child runs without job control, as before.
pub(super) unsafe fn acquire() {
    // SAFETY: TIOCSCTTY takes an integer; 0 takes it from no other session.
    unsafe { libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0) };
}

/// Ignores a signal until this is dropped.
struct Ignored {
    signal: i32,
    before: libc::sigaction,
}

impl Ignored {
    fn new(signal: i32) -> Option<Self> {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: all-zero is a valid sigaction (no flags, empty mask).
        let mut ignore: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        ignore.sa_sigaction = libc::SIG_IGN;
        // SAFETY: both point to sigactions on this stack.
        if unsafe { libc::sigaction(signal, ptr::from_ref(&ignore), before.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: sigaction succeeded and has filled it.
        Some(Self { signal, before: unsafe { before.assume_init() } })
    }
}

impl Drop for Ignored {
    fn drop(&mut self) {
        // SAFETY: restores what the kernel returned when it was replaced.
        unsafe { libc::sigaction(self.signal, ptr::from_ref(&self.before), ptr::null_mut()) };
    }
}
