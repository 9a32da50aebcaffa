//! Fork and exec, with a bound on how long the exec is waited for.
//!
//! The standard library waits for as long as the exec takes. A program on a disk that hangs would
//! take the manager with it, which waits in its only task.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString, c_char};
use std::io::{self, PipeReader, Read, pipe};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::ptr;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow};

use super::replace_program::HAND_OVER_VARIABLE;

/// How long the manager waits for an exec. A healthy disk takes a few milliseconds.
const EXEC_TIMEOUT: Duration = Duration::from_millis(200);

/// A process that was launched.
#[derive(Debug)]
pub struct Launched {
    /// Its pid.
    pub pid: u32,
    /// It does not execute its program yet: it says here why it cannot.
    executing: Option<PipeReader>,
}

impl Launched {
    /// Whether its program was not executed within the time that the launch waits.
    pub fn is_late(&self) -> bool {
        self.executing.is_some()
    }

    /// After its end: why its program was not executed. None if it was.
    pub fn failure(self) -> Option<io::Error> {
        read_failure(self.executing?)
    }
}

/// A program with its arguments and its environment, in the form that exec takes.
pub(super) struct Executable {
    argv: Vec<CString>,
    environment: Vec<CString>,
}

impl Executable {
    /// The manager's own environment, with `set_env` on top.
    pub(super) fn new(argv: &[OsString], set_env: &[(OsString, OsString)]) -> io::Result<Self> {
        // What is handed over to this manager is not for another process.
        let own = std::env::vars_os().filter(|(name, _)| name != HAND_OVER_VARIABLE);
        let mut environment: BTreeMap<OsString, OsString> = BTreeMap::new();
        environment.extend(own.chain(set_env.iter().cloned()));
        let variable = |(name, value): (OsString, OsString)| {
            CString::new([name.into_vec(), value.into_vec()].join(&b'='))
        };
        let environment = environment.into_iter().map(variable);
        let argv = argv.iter().map(|argument| CString::new(argument.clone().into_vec()));
        Ok(Self {
            argv: argv.collect::<Result<_, _>>()?,
            environment: environment.collect::<Result<_, _>>()?,
        })
    }

    /// Executes the file that this descriptor is open for, in the place of this process. Returns only
    /// if that fails.
    pub(super) fn replace_us(&self, program: BorrowedFd<'_>) -> io::Error {
        let (argv, environment) = (pointers(&self.argv), pointers(&self.environment));
        // SAFETY: C strings, in arrays that end with null. It returns only if it failed.
        unsafe { libc::fexecve(program.as_raw_fd(), argv.as_ptr(), environment.as_ptr()) };
        io::Error::last_os_error()
    }

    /// Forks, calls `set_up` in the child, and executes. If that fails in time, nothing is left.
    ///
    /// # Safety
    /// `set_up` makes async-signal-safe calls only.
    pub(super) unsafe fn launch(
        &self,
        set_up: impl Fn() -> io::Result<()>,
    ) -> io::Result<Launched> {
        let (argv, environment) = (pointers(&self.argv), pointers(&self.environment));
        let (reader, writer) = pipe()?;
        // Blocked across the fork: until it has reset its dispositions, the child would run *our*
        // handlers, and a signal meant for it would be lost in them.
        let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK);
        // SAFETY: the child only makes async-signal-safe calls before it executes or exits.
        let forked = unsafe { libc::fork() };
        if forked == 0 {
            let failed = match set_up() {
                // SAFETY: C strings, in arrays that end with null. It returns only if it failed.
                Ok(()) => unsafe {
                    libc::execvpe(argv[0], argv.as_ptr(), environment.as_ptr());
                    Errno::last_raw()
                },
                Err(error) => error.raw_os_error().unwrap_or(0),
            };
            let bytes = failed.to_ne_bytes();
            // SAFETY: a buffer with its own length; then the child ends without running our code.
            unsafe {
                libc::write(writer.as_raw_fd(), bytes.as_ptr().cast(), bytes.len());
                libc::_exit(shell_code(Errno::from_raw(failed)))
            }
        }
        let error = io::Error::last_os_error();
        // Neither call can fail: the argument is valid.
        let _ = mask.and_then(|mask| mask.thread_set_mask());
        drop(writer);
        let pid = u32::try_from(forked).map_err(|_| error)?;
        if !readable_within(&reader, EXEC_TIMEOUT) {
            return Ok(Launched { pid, executing: Some(reader) });
        }
        match read_failure(reader) {
            None => Ok(Launched { pid, executing: None }),
            Some(error) => {
                // SAFETY: our own child, which is about to exit; the status is not asked for.
                unsafe { libc::waitpid(forked, ptr::null_mut(), 0) };
                Err(error)
            }
        }
    }
}

/// The exit code of a shell that cannot execute a program: 127 not found, 126 found.
pub(super) fn shell_code(errno: Errno) -> i32 {
    match errno {
        Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::ENAMETOOLONG => 127,
        _ => 126,
    }
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

/// Whether there is something to read, or the end. Waits for it, but not longer than this.
fn readable_within(reader: &PipeReader, limit: Duration) -> bool {
    let until = Instant::now() + limit;
    let mut polled = libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    loop {
        let left = until.saturating_duration_since(Instant::now()).as_millis();
        // SAFETY: `polled` is one pollfd.
        let ready = unsafe { libc::poll(&raw mut polled, 1, i32::try_from(left).unwrap_or(0)) };
        // A signal interrupts it, also the one of the child's end.
        if ready >= 0 || Errno::last() != Errno::EINTR {
            return ready > 0;
        }
    }
}

/// What the child wrote; nothing if the pipe was closed by its exec, or it was killed before.
fn read_failure(mut reader: PipeReader) -> Option<io::Error> {
    let mut bytes = [0; 4];
    reader.read_exact(&mut bytes).ok()?;
    Some(io::Error::from_raw_os_error(i32::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exec_is_waited_for_200_milliseconds_at_most() {
        assert_eq!(EXEC_TIMEOUT, Duration::from_millis(200));
        let (reader, _writer) = pipe().unwrap();
        let began = Instant::now();
        assert!(!readable_within(&reader, EXEC_TIMEOUT), "nobody writes");
        // The kernel waits in whole milliseconds. At most: much less than a disk that hangs would take,
        // however busy the machine is.
        let waited = began.elapsed();
        assert!((199..10_000).contains(&waited.as_millis()), "{waited:?}");
    }
}
