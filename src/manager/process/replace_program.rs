//! Executes another program in the place of the manager, which keeps its pid and its children, asks
//! it before if it can take over, and reads the state that the previous program has handed over.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, PipeReader, Read, Seek, Write, pipe};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::sys::stat::fstat;

use super::fork_exec::{Executable, Launched};
use super::launch::ChildSetup;
use super::{ExitStatus, Signals};

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

fn variable(state: BorrowedFd<'_>) -> (OsString, Option<OsString>) {
    (HAND_OVER_VARIABLE.into(), Some(state.as_raw_fd().to_string().into()))
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

/// Longest answer that is read.
const MAX_ANSWER: u64 = 4096;

/// The file of the program that runs, and the arguments it was started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub path: PathBuf,
    pub args: Vec<OsString>,
}

impl Program {
    /// Finds path and arguments, early: later, the file may be another one.
    ///
    /// # Errors
    /// `/proc` cannot be used.
    pub fn find() -> io::Result<Self> {
        Ok(Self { path: fs::read_link("/proc/self/exe")?, args: std::env::args_os().collect() })
    }
}

/// True if this is the program that runs.
///
/// # Errors
/// The system's error.
pub fn is_own_program(file: &OwnedFd) -> io::Result<bool> {
    let (file, own) = (fstat(file)?, fs::metadata("/proc/self/exe")?);
    Ok((file.st_dev, file.st_ino) == (own.dev(), own.ino()))
}

/// True if the file is a program for this machine.
///
/// # Errors
/// The system's error.
pub fn is_for_this_machine(file: &OwnedFd) -> io::Result<bool> {
    /// Parts of the ELF header: name of the format, width, order of bytes; and the processor.
    const KIND: [std::ops::Range<usize>; 2] = [0..6, 18..20];
    let (mut own, mut other) = ([0; 20], [0; 20]);
    File::open("/proc/self/exe")?.read_exact_at(&mut own, 0)?;
    let read = File::from(file.try_clone()?).read_exact_at(&mut other, 0);
    Ok(read.is_ok() && KIND.into_iter().all(|part| own[part.clone()] == other[part]))
}

/// Fails unless only root and our own uid can write the file: whoever can write it decides what
/// this process becomes.
///
/// # Errors
/// The mode and owner that let others write the file, and what to do.
pub fn only_ours_to_write(file: &OwnedFd) -> Result<(), String> {
    let file = fstat(file).map_err(|error| error.to_string())?;
    let own = nix::unistd::geteuid().as_raw();
    if file.st_mode & libc::S_IFMT != libc::S_IFREG {
        return Err("it is not a file".to_owned());
    }
    if file.st_mode & 0o022 == 0 && [0, own].contains(&file.st_uid) {
        return Ok(());
    }
    Err(format!(
        "others can write it, so it is not executed: it has mode {:o} and belongs to uid {}; give it mode \
         755 and the uid {own} or 0",
        file.st_mode & 0o7777,
        file.st_uid
    ))
}

/// A program that is being asked.
#[derive(Debug)]
pub struct Checking {
    launched: Launched,
    answer: PipeReader,
}

/// Executes the program with `args`, with `state` open under its own number and stdout read by us.
///
/// # Errors
/// The program cannot be executed.
pub fn check(
    program: BorrowedFd<'_>,
    args: &[OsString],
    state: BorrowedFd<'_>,
) -> io::Result<Checking> {
    let (answer, writer) = pipe()?;
    fcntl(&answer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    let path = OsString::from(format!("/proc/self/fd/{}", program.as_raw_fd()));
    let argv: Vec<OsString> = [path].into_iter().chain(args.iter().cloned()).collect();
    let setup = ChildSetup::of_helper();
    let (state, stdout) = (state.as_raw_fd(), writer.as_raw_fd());
    let set_up = || {
        setup.apply()?;
        // SAFETY: integers only; both are open.
        unsafe {
            libc::fcntl(state, libc::F_SETFD, 0);
            libc::dup2(stdout, libc::STDOUT_FILENO);
        }
        Ok(())
    };
    // SAFETY: `set_up` makes system calls only; all it needs was allocated here.
    let launched = unsafe { Executable::new(&argv, &[])?.launch(set_up) }?;
    Ok(Checking { launched, answer })
}

impl Checking {
    /// The child's pid.
    pub fn pid(&self) -> u32 {
        self.launched.pid
    }

    /// The text that the program has written, after its end. An error if it ended with another code than 0.
    ///
    /// # Errors
    /// The reason why the program cannot take over.
    pub fn answer(self, status: ExitStatus) -> Result<String, String> {
        if let Some(error) = self.launched.failure() {
            return Err(error.to_string());
        }
        let mut answer = Vec::new();
        // Something else may hold the pipe open: what is there is enough.
        let _ = self.answer.take(MAX_ANSWER).read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).trim().to_owned();
        match status {
            ExitStatus::Code(0) => Ok(answer),
            ExitStatus::Code(code) if answer.is_empty() => {
                Err(format!("the program ended with code {code} when it was asked"))
            }
            ExitStatus::Code(_) => Err(answer),
            ExitStatus::Signal(signal) => {
                Err(format!("the program was ended by signal {signal} when it was asked"))
            }
        }
    }

    /// Ends the program with KILL.
    pub fn kill(&self) {
        if let Ok(pid) = i32::try_from(self.launched.pid) {
            // SAFETY: integers only; the child is not reaped yet, so the pid is its own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}

/// A second descriptor of the listener. The server closes its own when it closes; clients that connect
/// then wait in the backlog, which is kept open by this one.
#[derive(Debug, Clone, Default)]
pub struct KeptListener(Arc<Mutex<Option<OwnedFd>>>);

impl KeptListener {
    /// Keeps a listener that is open already.
    pub fn of(listener: OwnedFd) -> Self {
        Self(Arc::new(Mutex::new(Some(listener))))
    }

    /// Keeps this listener. Without a free descriptor none is kept: then clients must connect again.
    pub fn keep(&self, listener: BorrowedFd<'_>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = listener.try_clone_to_owned().ok();
    }

    /// One more descriptor of the listener, if one is kept.
    ///
    /// # Errors
    /// There is no free descriptor.
    pub fn descriptor(&self) -> io::Result<Option<OwnedFd>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().map(OwnedFd::try_clone).transpose()
    }
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
