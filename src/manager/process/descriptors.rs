//! Does work that may hang with a file open, without delaying the engine's launch.

use std::io;
use std::panic::resume_unwind;
use std::thread::{Builder, scope};

/// Enough for writing a file; only touched pages take memory.
const STACK: usize = 128 * 1024;

/// Does `work` on a thread that shares no descriptor but 0–2 with the rest of the manager, and
/// waits for its end. Blocks.
///
/// A launched child starts with copies of all descriptors and closes them when it executes. Closing
/// a file of a disk that hangs waits for that disk, and the launch would wait with it.
///
/// `work` must not use descriptors that were opened elsewhere: in its thread they do not exist. Nor
/// may it wake a task, which needs a descriptor.
///
/// # Errors
/// No thread could be made, or it could not be given descriptors of its own.
pub fn with_own_descriptors<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    scope(|scope| {
        let own = || own_descriptors().and_then(|()| work());
        let thread = Builder::new().stack_size(STACK).spawn_scoped(scope, own)?;
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Gives the calling thread a table of its own with only 0–2 in it.
fn own_descriptors() -> io::Result<()> {
    // Copies only what is below the range: nothing is closed, so nothing can hang.
    // SAFETY: takes integers only; no object of this thread owns a descriptor yet.
    let done =
        unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_UNSHARE) };
    if done == 0 {
        return Ok(());
    }
    // Before Linux 5.9. The copies of the sockets exist as long as the work. That does no harm
    // unless it hangs; then a peer notices late that its connection was closed.
    // SAFETY: takes an integer only.
    match unsafe { libc::unshare(libc::CLONE_FILES) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn what_is_opened_inside_is_not_open_outside() {
        let outside = File::open("/proc/self/status").unwrap();
        let links = |number: i32| fs::read_link(format!("/proc/thread-self/fd/{number}"));
        let number = with_own_descriptors(|| {
            assert!(
                links(outside.as_raw_fd()).is_err(),
                "the manager's descriptor is not in there"
            );
            let inside = File::open("/proc/version")?;
            assert!(links(inside.as_raw_fd())?.ends_with("version"));
            let number = inside.as_raw_fd();
            // Left open: it is closed when the thread ends.
            std::mem::forget(inside);
            Ok(number)
        });
        assert!(!links(number.unwrap()).is_ok_and(|link| link.ends_with("version")));
        assert!(links(outside.as_raw_fd()).is_ok(), "and the manager's stays open");
    }

    #[test]
    fn its_error_is_passed_on() {
        let failed = with_own_descriptors(|| fs::read("/no/such/file"));
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
