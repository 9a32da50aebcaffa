//! Sends a signal to one certain process, never to another process that has got its pid since.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use nix::errno::Errno;

use super::{identity, procfs};

/// The result of sending a signal. Failures are logged where they happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The signal was sent to the process.
    Sent,
    /// There is no such process any more.
    Gone,
    /// The manager may not signal the process: it has another uid, and CAP_KILL is missing.
    Denied,
}

/// Signals the process of this pid that started at `started`.
pub(super) fn send(pid: u32, started: u64, signal: i32) -> Delivery {
    let Some(target) = target(pid) else { return Delivery::Gone };
    let handle = pidfd_open(target);
    if matches!(handle, Err(Errno::ESRCH)) {
        return Delivery::Gone;
    }
    // Checked after the handle was taken: if the pid is still the right process, so is the handle.
    match procfs::process(pid) {
        Ok(Some(process)) if process.started == started => {}
        Ok(_) | Err(_) => return Delivery::Gone,
    }
    let sent = match handle.and_then(|handle| pidfd_send_signal(handle.as_raw_fd(), signal)) {
        // The call does not exist (gVisor, Linux before 5.3), or a filter forbids it with one of
        // these errors; `kill` then reports the true error.
        Err(Errno::ENOSYS | Errno::EPERM | Errno::EINVAL) => kill(target, signal),
        other => other,
    };
    report(sent, pid, signal)
}

/// Signals a child that has not been reaped: no other process can have its pid.
pub(super) fn send_to_child(pid: u32, signal: i32) -> Delivery {
    match target(pid) {
        Some(target) => report(kill(target, signal), pid, signal),
        None => Delivery::Gone,
    }
}

/// Signals the group of a child that has not been reaped: no other group can have its number.
pub(super) fn send_to_group_of_child(pid: u32, signal: i32) -> Delivery {
    match target(pid) {
        Some(target) => report(kill(-target, signal), pid, signal),
        None => Delivery::Gone,
    }
}

/// The pid as the system call takes it. 0 and negative numbers would mean groups, 1 and the
/// manager's own pid would end the pod: no bug elsewhere may lead to one of them.
fn target(pid: u32) -> Option<libc::pid_t> {
    libc::pid_t::try_from(pid).ok().filter(|&target| target > 1 && pid != identity::own_pid())
}

fn report(sent: Result<(), Errno>, pid: u32, signal: i32) -> Delivery {
    match sent {
        Ok(()) => Delivery::Sent,
        Err(Errno::ESRCH) => {
            tracing::debug!(pid, signal, "process was gone before the signal");
            Delivery::Gone
        }
        Err(error) => {
            tracing::warn!(
                pid,
                signal,
                error = error.desc(),
                "cannot signal the process: if the engine has another uid, the manager needs CAP_KILL"
            );
            Delivery::Denied
        }
    }
}

fn kill(target: libc::pid_t, signal: i32) -> Result<(), Errno> {
    // SAFETY: takes integers; `target` was checked above.
    Errno::result(unsafe { libc::kill(target, signal) }).map(drop)
}

fn pidfd_open(target: libc::pid_t) -> Result<OwnedFd, Errno> {
    // SAFETY: takes integers.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, target, 0) };
    let raw = Errno::result(raw).and_then(|raw| RawFd::try_from(raw).map_err(|_| Errno::EBADF))?;
    // SAFETY: a new descriptor from the kernel, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

fn pidfd_send_signal(handle: RawFd, signal: i32) -> Result<(), Errno> {
    let no_info = ptr::null::<libc::siginfo_t>();
    // SAFETY: an open descriptor, integers, and a null that the call allows.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, handle, signal, no_info, 0) };
    Errno::result(sent).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mistake_reaches_init_a_group_or_ourselves() {
        for pid in [0, 1, u32::MAX, 1 << 31, identity::own_pid()] {
            assert_eq!(target(pid), None, "{pid}");
            assert_eq!(send(pid, 0, libc::SIGKILL), Delivery::Gone);
            assert_eq!(send_to_child(pid, libc::SIGKILL), Delivery::Gone);
            assert_eq!(send_to_group_of_child(pid, libc::SIGKILL), Delivery::Gone);
        }
    }

    #[test]
    fn a_recycled_pid_is_not_signalled() {
        let parent = nix::unistd::getppid().as_raw().cast_unsigned();
        let started = procfs::process(parent).unwrap().unwrap().started;
        // Signal 0 only asks whether it could be sent.
        assert_eq!(send(parent, started + 1, 0), Delivery::Gone);
    }
}
