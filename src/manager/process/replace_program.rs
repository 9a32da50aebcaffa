//! Executes another program in the place of the manager, which keeps its pid and its children, and
//! reads the state that the previous program has handed over.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{SigSet, SigmaskHow};

use super::Signals;
use super::fork_exec::Executable;

/// Variable with the number of the descriptor of the handed-over state.
pub const HAND_OVER_VARIABLE: &str = "STAYPUT_HAND_OVER";

/// A file in memory with this content.
///
/// # Errors
/// There is no memory or no free descriptor.
pub fn in_memory(content: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(c"hand-over", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file.into())
}

/// A program, held open: which file it is cannot change any more.
///
/// # Errors
/// The file cannot be read, or there is no free descriptor.
pub fn open_program(path: &Path) -> io::Result<OwnedFd> {
    // A pipe would be waited for.
    Ok(OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?.into())
}

/// The program that runs, also if its file has been replaced.
///
/// # Errors
/// `/proc` cannot be used, or there is no free descriptor.
pub fn own_program() -> io::Result<OwnedFd> {
    open_program(Path::new("/proc/self/exe"))
}

/// Executes the program in the place of this one. `state` and `kept` stay open. Returns only if it
/// fails; nothing has changed then.
///
/// A signal that comes meanwhile is received by the program, which unblocks signals when it has its
/// handlers: as PID 1, it would lose one that comes before.
pub fn execute(
    program: BorrowedFd<'_>,
    args: &[OsString],
    state: BorrowedFd<'_>,
    kept: &[BorrowedFd<'_>],
    signals: &mut Signals,
) -> io::Error {
    if let Some(thread) = waiting_thread() {
        // The kernel ends all other threads first, and would wait for this one.
        return io::Error::other(format!("the thread {thread} waits for a disk"));
    }
    let executable = match Executable::new(args, &[variable(state)]) {
        Ok(executable) => executable,
        Err(error) => return error,
    };
    // Neither this nor setting it back can fail: the arguments are valid.
    let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK);
    signals.send_again();
    keep_open(kept, true);
    keep_open(&[state], true);
    let error = executable.replace_us(program);
    keep_open(kept, false);
    keep_open(&[state], false);
    let _ = mask.and_then(|mask| mask.thread_set_mask());
    error
}

/// Goes back to the previous program, with the state that it has handed over. Returns only if that fails.
pub fn execute_again(
    program: BorrowedFd<'_>,
    args: &[OsString],
    state: BorrowedFd<'_>,
    kept: &[BorrowedFd<'_>],
) -> io::Error {
    Signals::block();
    keep_open(kept, true);
    keep_open(&[state], true);
    match Executable::new(args, &[variable(state)]) {
        Ok(executable) => executable.replace_us(program),
        Err(error) => error,
    }
}

fn variable(state: BorrowedFd<'_>) -> (OsString, OsString) {
    (HAND_OVER_VARIABLE.into(), state.as_raw_fd().to_string().into())
}

fn keep_open(descriptors: &[BorrowedFd<'_>], keep: bool) {
    let flags = if keep { FdFlag::empty() } else { FdFlag::FD_CLOEXEC };
    for descriptor in descriptors {
        // It is open, and the flag is valid.
        let _ = fcntl(descriptor, FcntlArg::F_SETFD(flags));
    }
}

/// A thread that not even KILL ends now.
fn waiting_thread() -> Option<String> {
    let threads = fs::read_dir("/proc/self/task").ok()?.flatten();
    threads.into_iter().find_map(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).ok()?;
        // The name is in parentheses and may contain some.
        let (name, rest) = stat.rsplit_once(')')?;
        rest.trim_start().starts_with('D').then(|| format!("{name})"))
    })
}

/// The content of a file in memory that this process was executed with.
///
/// # Errors
/// There is no such descriptor, or it is something else.
pub fn handed_over(number: RawFd) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let mut file = File::from(inherited(number)?);
    file.rewind()?;
    file.read_to_end(&mut content)?;
    Ok(content)
}

/// A descriptor that this process was executed with. It is not passed on.
///
/// # Errors
/// There is no such descriptor.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: an integer only; a number that is not open is refused.
    if number <= 2 || unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: it is open, and whoever has handed it over has said that it is ours.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_handed_over_is_read_from_its_beginning() {
        let state = in_memory(b"content").unwrap();
        let number = std::os::fd::IntoRawFd::into_raw_fd(state);
        assert_eq!(handed_over(number).unwrap(), b"content");
        assert_eq!(handed_over(number).unwrap_err().raw_os_error(), Some(libc::EBADF));
        assert!(inherited(1).is_err(), "stdout is not handed over");
    }
}
