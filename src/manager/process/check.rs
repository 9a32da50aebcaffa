//! Asks another version of the program whether it can take over, by executing it as a child.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, PipeReader, Read, pipe};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::fstat;

use super::ExitStatus;
use super::fork_exec::Executable;
use super::launch::ChildSetup;

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
    /// The child's pid.
    pub pid: u32,
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
    Ok(Checking { pid: launched.pid, answer })
}

impl Checking {
    /// The text that the program has written, after its end. An error if it ended with another code than 0.
    ///
    /// # Errors
    /// The reason why the program cannot take over.
    pub fn answer(self, status: ExitStatus) -> Result<String, String> {
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
        if let Ok(pid) = i32::try_from(self.pid) {
            // SAFETY: integers only; the child is not reaped yet, so the pid is its own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}
