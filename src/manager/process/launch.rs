//! Launches the engine in its own session, without the manager's signal settings and descriptors,
//! and with the terminal, if there is one.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::path::Path;
use std::{fs, ptr};

use nix::errno::Errno;

use super::fork_exec::{self, Executable, Launched};
use super::{is_pid_1, procfs};

/// Command to launch. Working directory, umask, descriptors 0–2 and the rest of the environment are
/// those that the manager was started with.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The command and its arguments, passed as they are; a command without `/` is looked up in PATH.
    pub argv: Vec<OsString>,
    /// Changes of the manager's own environment, one after the other.
    pub set_env: EnvironmentChanges,
}

/// Variables to set; one without a value is removed.
pub type EnvironmentChanges = Vec<(OsString, Option<OsString>)>;

/// The command could not be started; no process is left of the attempt.
#[derive(Debug, thiserror::Error)]
#[error("cannot execute {program:?}: {}{}", reason(.source), hint(.program, .source))]
pub struct LaunchError {
    /// The command as it was given.
    pub program: OsString,
    /// The system's error.
    pub source: io::Error,
}

impl LaunchError {
    /// The exit code of a shell in this case: 127 not found, 126 found but not executable.
    pub fn shell_code(&self) -> i32 {
        fork_exec::shell_code(errno(&self.source))
    }

    /// True if processes, memory or descriptors were used up: the same command may work later.
    pub fn is_shortage(&self) -> bool {
        matches!(errno(&self.source), Errno::EAGAIN | Errno::ENOMEM | Errno::EMFILE | Errno::ENFILE)
    }
}

/// Starts the command and returns once it has been executed, or has taken too long for it.
///
/// The child has an empty signal mask, default dispositions (also of what *we* were started with
/// ignored: a JVM that inherits an ignored TERM never stops), its own session and group, only
/// descriptors 0–2, the terminal if stdin is one, and a raised `oom_score_adj`. When the manager is
/// not PID 1 the child is killed with it; the kernel ties that to the calling *thread*, and forgets
/// it if the child changes its uid.
///
/// If exec fails, this waits for the child it forked. Call it only from the task that drains the
/// [`Reaper`](super::Reaper), which could take that child for another one.
///
/// # Errors
/// No such command, not executable, or no process could be made.
pub fn launch(launch: &Launch) -> Result<Launched, LaunchError> {
    let failed = |program: &OsString, source| LaunchError { program: program.clone(), source };
    let Some(program) = launch.argv.first() else {
        let nothing = io::Error::new(io::ErrorKind::InvalidInput, "no command was given");
        return Err(failed(&OsString::new(), nothing));
    };
    let setup = ChildSetup { has_terminal: release_terminal(), ..ChildSetup::new() };
    Executable::new(&launch.argv, &launch.set_env)
        // SAFETY: `ChildSetup::apply` makes system calls only; all it needs was allocated here.
        .and_then(|program| unsafe { program.launch(|| setup.apply()) })
        .map_err(|source| failed(program, source))
}

/// Settings that the child applies between fork and exec.
pub(super) struct ChildSetup {
    has_terminal: bool,
    dies_with: Option<nix::unistd::Pid>,
    oom_score_adj: Option<String>,
    close: Vec<RawFd>,
}

impl ChildSetup {
    /// Settings of a child that is not the engine: it dies with the manager, and has the manager's
    /// `oom_score_adj`.
    pub(super) fn of_helper() -> Self {
        Self { oom_score_adj: None, ..Self::new() }
    }

    fn new() -> Self {
        Self {
            has_terminal: false,
            dies_with: (!is_pid_1()).then(nix::unistd::getpid),
            oom_score_adj: procfs::raised_oom_score().map(|score| score.to_string()),
            close: if has_close_range() { Vec::new() } else { inherited_descriptors() },
        }
    }

    /// Runs in the forked child: async-signal-safe calls only, so no allocation and no lock.
    pub(super) fn apply(&self) -> io::Result<()> {
        for signal in 1..=64_i32 {
            // All zero is SIG_DFL with no flags and no mask on every architecture. This uses the
            // system call, because libc's function refuses the signals that it reserves, so they
            // would stay ignored if the manager was started with them ignored. KILL and STOP fail,
            // as they must.
            let default = [0_u64; 8];
            // SAFETY: `default` is larger than the kernel's struct, whose set has 8 bytes.
            unsafe {
                let none = ptr::null_mut::<u8>();
                libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), none, 8_usize)
            };
        }
        // Only now: the manager's handlers are gone, so a signal has its default effect.
        // SAFETY: an empty set of the kernel's size; the old set is not requested.
        unsafe {
            let (empty, none) = (ptr::from_ref(&0_u64), ptr::null_mut::<u8>());
            libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, empty, none, 8_usize)
        };
        // SAFETY: takes no arguments and no memory. Cannot fail: a forked child leads no group yet.
        unsafe { libc::setsid() };
        if self.has_terminal {
            // SAFETY: this is the child, and it has its own session now.
            unsafe { acquire_terminal() };
        }
        if let Some(manager) = self.dies_with {
            // SAFETY: takes integers only. A failure cannot be reported from here.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            // If the manager died before that call, the kernel would never send the signal.
            if nix::unistd::getppid() != manager {
                return Err(Errno::ESRCH.into());
            }
        }
        if let Some(score) = &self.oom_score_adj {
            // SAFETY: a constant C string, and a buffer with its own length. Best effort.
            unsafe {
                let path = c"/proc/self/oom_score_adj".as_ptr();
                let file = libc::open(path, libc::O_WRONLY | libc::O_CLOEXEC);
                if file >= 0 {
                    libc::write(file, score.as_ptr().cast(), score.len());
                    libc::close(file);
                }
            }
        }
        // Marked rather than closed: a failed exec is still to be reported by a pipe.
        if !close_on_exec_from(3) {
            for &descriptor in &self.close {
                // SAFETY: sets a flag; a number that is no longer open is refused.
                unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
            }
        }
        Ok(())
    }
}

/// Marks every descriptor from `first` on to be closed by exec. False where the kernel cannot.
fn close_on_exec_from(first: u32) -> bool {
    let flags = libc::CLOSE_RANGE_CLOEXEC;
    // By number, because the libc of an older image has no function for it.
    // SAFETY: takes integers only, and closes nothing with this flag.
    unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, flags) == 0 }
}

/// True if `close_range` with its flag exists (Linux 5.11) and no filter forbids it.
fn has_close_range() -> bool {
    // A range that is always empty.
    close_on_exec_from(u32::MAX)
}

/// Descriptors from 3 on that are open now. Everything opened later closes itself on exec.
fn inherited_descriptors() -> Vec<RawFd> {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|&descriptor| descriptor > 2).collect()
}

fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw)
}

fn reason(error: &io::Error) -> String {
    match errno(error) {
        Errno::UnknownErrno => error.to_string(),
        known => known.desc().to_owned(),
    }
}

/// Advice, if the error alone is misleading.
fn hint(program: &OsString, error: &io::Error) -> &'static str {
    match errno(error) {
        Errno::ENOENT if Path::new(program).exists() => {
            " (the file is there, but the interpreter or loader it names is not)"
        }
        Errno::EACCES => " (give it the execute permission, and its file system no `noexec`)",
        Errno::ENOEXEC => " (it is built for another processor, is cut off, or is not a program)",
        Errno::EAGAIN => " (raise the limit on processes: pids of the container, or `ulimit -u`)",
        _ => "",
    }
}

/// Releases the terminal if the manager leads its session, so that the child's new session can take
/// it. True if stdin is a terminal at all.
///
/// Does nothing if another process leads the session, such as a shell: the shell keeps its
/// terminal.
pub(super) fn release_terminal() -> bool {
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
pub(super) unsafe fn acquire_terminal() {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn error(program: &str, code: i32) -> LaunchError {
        LaunchError { program: program.into(), source: io::Error::from_raw_os_error(code) }
    }

    #[test]
    fn a_missing_command_is_127_and_anything_else_126() {
        assert_eq!(error("x", libc::ENOENT).shell_code(), 127);
        assert_eq!(error("x", libc::ENOTDIR).shell_code(), 127);
        assert_eq!(error("x", libc::EACCES).shell_code(), 126);
        assert_eq!(error("x", libc::ENOEXEC).shell_code(), 126);
    }

    #[test] // proves JOURNAL-13
    fn what_was_used_up_may_be_there_again_later() {
        for code in [libc::EAGAIN, libc::ENOMEM, libc::EMFILE, libc::ENFILE] {
            assert!(error("x", code).is_shortage(), "{code}");
        }
        for code in [libc::ENOENT, libc::EACCES, libc::ENOEXEC, libc::EINVAL] {
            assert!(!error("x", code).is_shortage(), "{code}");
        }
    }

    #[test]
    fn the_message_names_the_command_and_the_cure() {
        let missing = error("/no/such", libc::ENOENT).to_string();
        assert_eq!(missing, r#"cannot execute "/no/such": No such file or directory"#);
        let no_interpreter = error("/proc/self/exe", libc::ENOENT).to_string();
        assert!(no_interpreter.ends_with("interpreter or loader it names is not)"));
    }

    #[test]
    fn without_close_range_the_open_descriptors_are_listed() {
        let file = fs::File::open("/dev/null").unwrap();
        let listed = inherited_descriptors();
        assert!(listed.contains(&std::os::fd::AsRawFd::as_raw_fd(&file)));
        assert!(listed.iter().all(|&descriptor| descriptor > 2));
    }
}
