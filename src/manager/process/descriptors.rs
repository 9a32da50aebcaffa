//! Gives a thread whose files may hang a table of descriptors of its own.

use std::io;

/// Gives the calling thread its own copy of the manager's descriptors. What it opens later is not
/// open in other threads, and the other way round.
///
/// A launched child starts with copies of all descriptors and closes them when it executes. Closing
/// a file of a disk that hangs waits for that disk, and the launch would wait with it.
///
/// Call it in a runtime, for a thread that lives as long as the manager, before there are sockets of
/// peers: a copy of one would keep its connection open. The copy of the runtime's own descriptor is
/// what the thread wakes tasks with.
///
/// # Errors
/// The kernel refused.
pub fn own_descriptors() -> io::Result<()> {
    // This range is empty, so nothing is closed.
    let (first, last) = (u32::MAX, u32::MAX);
    // SAFETY: takes integers only.
    let done =
        unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_UNSHARE) };
    if done == 0 {
        return Ok(());
    }
    // Before Linux 5.9.
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
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn what_is_opened_inside_is_not_open_outside() {
        let links = |number: i32| fs::read_link(format!("/proc/thread-self/fd/{number}"));
        let (opened, number) = channel();
        let (end, ending) = channel::<()>();
        let thread = thread::spawn(move || {
            own_descriptors().unwrap();
            let inside = File::open("/proc/version").unwrap();
            assert!(links(inside.as_raw_fd()).unwrap().ends_with("version"));
            opened.send(inside.as_raw_fd()).unwrap();
            let _ = ending.recv();
        });
        let number = number.recv().unwrap();
        assert!(!links(number).is_ok_and(|link| link.ends_with("version")));
        drop(end);
        thread.join().unwrap();
    }

    #[tokio::test]
    async fn the_thread_still_wakes_tasks() {
        use crate::{errors::Errors, worker::Worker};
        let worker = Worker::start("test", &Errors::default()).unwrap();
        worker.run(own_descriptors).await.unwrap().unwrap();
        let (go, gate) = channel::<()>();
        let work = worker.run(move || gate.recv());
        let later = tokio::spawn(async move { go.send(()).unwrap() });
        work.await.unwrap().unwrap();
        later.await.unwrap();
    }
}
