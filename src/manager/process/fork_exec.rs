//! Fork and exec, with a bound on how long the exec is waited for.
//!
//! The standard library waits for as long as the exec takes. A program on a disk that hangs would
//! take the manager with it, which waits in its only task.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, OsString, c_char};
use std::io::{self, PipeReader, Read, pipe};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::ptr;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow};

use super::replace_program::HAND_OVER_VARIABLE;

/// Runs scripts without `#!`.
const SHELL: &CStr = c"/bin/sh";
/// Where commands are looked for if there is no PATH, as musl does.
const DEFAULT_PATH: &str = "/usr/local/bin:/bin:/usr/bin";

/// How long the manager waits for an exec. A healthy disk takes a few milliseconds.
const EXEC_TIMEOUT: Duration = Duration::from_millis(200);

/// A process that was launched.
#[derive(Debug)]
pub struct Launched {
    /// Pid of the process.
    pub pid: u32,
    /// Open while the process has not executed its program yet: it reports here why it cannot.
    executing: Option<PipeReader>,
}

impl Launched {
    /// True if the program was not executed within the time that the launch waits.
    pub fn is_late(&self) -> bool {
        self.executing.is_some()
    }

    /// Error because of which the program was not executed, if so; to be called after the process has ended.
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
    /// A program in the manager's own environment, changed by `set_env`: a variable without a value is
    /// removed.
    pub(super) fn new(
        argv: &[OsString],
        set_env: &[(OsString, Option<OsString>)],
    ) -> io::Result<Self> {
        // What is handed over to this manager is not for another process.
        let own = std::env::vars_os().filter(|(name, _)| name != HAND_OVER_VARIABLE);
        let mut environment: BTreeMap<OsString, OsString> = BTreeMap::new();
        environment.extend(own);
        for (name, value) in set_env.iter().cloned() {
            match value {
                Some(value) => environment.insert(name, value),
                None => environment.remove(&name),
            };
        }
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
        let search = Search::new(&self.argv)?;
        let environment = pointers(&self.environment);
        let (reader, writer) = pipe()?;
        // Blocked across the fork: until it has reset its dispositions, the child would run *our*
        // handlers, and a signal meant for it would be lost in them.
        let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK);
        // SAFETY: the child only makes async-signal-safe calls before it executes or exits.
        let forked = unsafe { libc::fork() };
        if forked == 0 {
            let failed = match set_up() {
                // SAFETY: C strings, in an array that ends with null.
                Ok(()) => unsafe { search.execute(&environment) },
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

/// Paths where a program is looked for, and its arguments: all that the child needs, made before the fork.
struct Search {
    paths: Vec<CString>,
    argv: Vec<*const c_char>,
    /// Arguments for a script without `#!`: the shell, a place for the script's path, the script's
    /// own arguments.
    shell: Vec<*const c_char>,
}

impl Search {
    /// Looks for a command as a shell does: in PATH if it has no `/`.
    fn new(argv: &[CString]) -> io::Result<Self> {
        let command = argv.first().map(|command| OsStr::from_bytes(command.to_bytes()));
        let command = command.unwrap_or_default();
        let paths = if command.is_empty() || command.as_bytes().contains(&b'/') {
            vec![PathBuf::from(command)]
        } else {
            let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
            std::env::split_paths(&path).map(|directory| directory.join(command)).collect()
        };
        let paths = paths.into_iter().map(|path| CString::new(path.into_os_string().into_vec()));
        let argv = pointers(argv);
        let arguments = argv.iter().skip(1).copied();
        let shell = [SHELL.as_ptr(), ptr::null()].into_iter().chain(arguments).collect();
        Ok(Self { paths: paths.collect::<Result<_, _>>()?, argv, shell })
    }

    /// Executes the first program that is found. Returns only if none can be: the error of the system.
    /// Async-signal-safe.
    ///
    /// # Safety
    /// `environment` is an array of C strings that ends with null, and those of `argv` still exist.
    unsafe fn execute(mut self, environment: &[*const c_char]) -> i32 {
        let (mut denied, mut last) = (false, libc::ENOENT);
        for path in &self.paths {
            // SAFETY: a C string, and arrays of them that end with null.
            unsafe { libc::execve(path.as_ptr(), self.argv.as_ptr(), environment.as_ptr()) };
            last = Errno::last_raw();
            match last {
                libc::ENOENT | libc::ENOTDIR => {}
                libc::EACCES => denied = true,
                libc::ENOEXEC if is_script(path) => {
                    self.shell[1] = path.as_ptr();
                    let argv = self.shell.as_ptr();
                    // SAFETY: as above.
                    unsafe { libc::execve(SHELL.as_ptr(), argv, environment.as_ptr()) };
                    return Errno::last_raw();
                }
                _ => return last,
            }
        }
        if denied { libc::EACCES } else { last }
    }
}

/// True if a file that the kernel knows no way to execute is a script, and not an empty or a broken
/// program: that would end with 0, or with 127, as if its command was not found. Async-signal-safe.
fn is_script(path: &CStr) -> bool {
    let mut head = [0_u8; 128];
    // SAFETY: a C string, and a buffer with its own length.
    let read = unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        libc::read(file, head.as_mut_ptr().cast(), head.len())
    };
    let read = usize::try_from(read).unwrap_or(0);
    read > 0 && !head[..read].contains(&0)
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

/// True if the pipe has something to read, or has ended. Waits for that, but not longer than `limit`.
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

/// Error that the child wrote; `None` if the pipe was closed by its exec, or the child was killed before.
fn read_failure(mut reader: PipeReader) -> Option<io::Error> {
    let mut bytes = [0; 4];
    reader.read_exact(&mut bytes).ok()?;
    Some(io::Error::from_raw_os_error(i32::from_ne_bytes(bytes)))
}

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
    fn text_is_a_script_and_an_empty_or_a_broken_program_is_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = CString::new(file.path().as_os_str().as_bytes()).unwrap();
        for (content, expected) in [(&b"exit 5\n"[..], true), (b"", false), (b"\x7fELF\0", false)] {
            std::fs::write(file.path(), content).unwrap();
            assert_eq!(is_script(&path), expected, "{content:?}");
        }
    }

    #[test] // proves STOP-11
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
