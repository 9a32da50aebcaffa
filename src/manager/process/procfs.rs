//! Reads what `/proc` shows of processes: parent, start time, environment, `oom_score_adj` and more.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::time::Duration;
use std::{str, thread};

use serde::{Deserialize, Serialize};

use super::own_pid;
use super::signals::{self, Children};

/// Enough for a `stat` line: 52 numbers and a name of 64 bytes.
const STAT_MAX: usize = 2048;
/// The class name is near the end of a JVM's arguments; longer arguments are not worth the memory.
const COMMAND_LINE_MAX: u64 = 256 * 1024;
/// How often a process in the middle of an exec is read again; with [`EXEC_PAUSE`] 5 ms.
const EXEC_READS: u32 = 50;
/// Pause between two of these reads.
const EXEC_PAUSE: Duration = Duration::from_micros(100);

/// `/proc` does not show our processes.
#[derive(Debug, thiserror::Error)]
#[error("/proc cannot be used: {source}; mount the one of this process namespace")]
pub struct ProcUnusable {
    /// The system's error.
    #[from]
    source: io::Error,
}

/// One process at the time it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) session: u32,
    /// Clock ticks from boot to the process's start: with the pid, they name one process for good.
    pub(super) started: u64,
    /// True if the process is neither zombie nor dead.
    pub(super) alive: bool,
    /// True in an uninterruptible wait (state D), where not even KILL reaches the process.
    pub(super) uninterruptible: bool,
    /// Name of the executed file, cut to 15 bytes by the kernel.
    pub(super) name: String,
}

/// Result of looking for a variable in a process's environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carries {
    Yes,
    No,
    /// The manager may not read it: the process has another uid, and the capability is missing.
    Unreadable,
}

/// Every process of the namespace, and the pids whose entries may not be read (`hidepid`).
///
/// # Errors
/// `/proc` does not exist, or belongs to another namespace: its pids would be wrong.
pub(super) fn processes() -> Result<(Vec<Process>, Vec<u32>), ProcUnusable> {
    check()?;
    let (mut open, mut closed) = (Vec::new(), Vec::new());
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        match process(pid) {
            Ok(Some(process)) => open.push(process),
            // The process has ended since it was listed.
            Ok(None) => {}
            Err(_) => closed.push(pid),
        }
    }
    Ok((open, closed))
}

/// Checks that `/proc` shows our process namespace.
///
/// # Errors
/// `/proc` does not exist, or shows another namespace.
pub(super) fn check() -> Result<(), ProcUnusable> {
    match fs::read_link("/proc/self")?.to_str() {
        Some(pid) if pid == own_pid().to_string() => Ok(()),
        Some(_) | None => {
            Err(io::Error::other("it is mounted for another process namespace").into())
        }
    }
}

/// One process, `None` if there is none of that pid.
pub(super) fn process(pid: u32) -> io::Result<Option<Process>> {
    let mut line = [0; STAT_MAX];
    let read = File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut line));
    match read {
        Ok(length) => Ok(parse_stat(&line[..length])),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads `pid (name) state parent group session …`; the name may hold spaces and parentheses.
fn parse_stat(line: &[u8]) -> Option<Process> {
    let open = line.iter().position(|&byte| byte == b'(')?;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let pid = str::from_utf8(&line[..open]).ok()?.trim().parse().ok()?;
    let name = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
    let rest: Vec<&str> =
        str::from_utf8(&line[close + 1..]).ok()?.split_ascii_whitespace().collect();
    let number = |field: usize| rest.get(field)?.parse::<u64>().ok();
    let ended = matches!(*rest.first()?, "Z" | "X" | "x");
    Some(Process {
        pid,
        parent: u32::try_from(number(1)?).ok()?,
        // It is 0 for a session outside of the manager's namespace.
        session: u32::try_from(number(3)?).ok()?,
        started: number(19)?,
        // A process whose first thread has ended while others run looks like a zombie, but is not
        // one.
        alive: !ended || number(17)? > 1,
        uninterruptible: *rest.first()? == "D",
        name,
    })
}

/// The effective uid of a process, `None` if it has ended or may not be read.
///
/// Not the owner of its directory: that is root for a process that has changed its uid.
pub(super) fn effective_uid(pid: u32) -> Option<u32> {
    parse_effective_uid(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

fn parse_effective_uid(status: &str) -> Option<u32> {
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    uids.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The arguments of a process, empty if it has ended, may not be read, or has none (a zombie).
pub(super) fn command_line(pid: u32) -> Vec<u8> {
    let mut arguments = Vec::new();
    if let Ok(file) = File::open(format!("/proc/{pid}/cmdline")) {
        // A process that ends meanwhile cuts the text short.
        let _ = file.take(COMMAND_LINE_MAX).read_to_end(&mut arguments);
    }
    arguments
}

/// Looks for exactly this `NAME=value` in the environment that a process was executed with.
///
/// In the middle of an exec a process has neither environment nor arguments. That takes only a
/// moment, so this waits: a process that was taken for a stranger would never be checked again.
pub(super) fn carries(pid: u32, variable: &[u8]) -> Carries {
    let mut is_bare = false;
    for _ in 0..EXEC_READS {
        match environment_holds(pid, variable) {
            Ok(Some(true)) => return Carries::Yes,
            Ok(Some(false)) => return Carries::No,
            Ok(None) => {}
            Err(error) if is_gone(&error) => return Carries::No,
            Err(_) => return Carries::Unreadable,
        }
        if is_executing(pid) {
            is_bare = false;
            thread::sleep(EXEC_PAUSE);
        } else if is_bare {
            return Carries::No;
        } else {
            // The exec may have ended between the two reads, so an empty environment must be seen
            // twice.
            is_bare = true;
        }
    }
    Carries::No
}

/// True if the environment holds the variable; `None` if the environment is empty.
fn environment_holds(pid: u32, variable: &[u8]) -> io::Result<Option<bool>> {
    let mut text = BufReader::with_capacity(4096, File::open(format!("/proc/{pid}/environ"))?);
    if text.fill_buf()?.is_empty() {
        return Ok(None);
    }
    holds_entry(text, variable).map(Some)
}

/// True if the process is alive, but without any argument, even its own name.
fn is_executing(pid: u32) -> bool {
    command_line(pid).is_empty() && matches!(process(pid), Ok(Some(process)) if process.alive)
}

/// Searches for a whole NUL-ended entry, block by block: an environment may be megabytes long.
fn holds_entry(mut text: impl BufRead, entry: &[u8]) -> io::Result<bool> {
    // How much of the present entry matches so far; `None` once it differs.
    let mut matched = Some(0);
    loop {
        let block = text.fill_buf()?;
        if block.is_empty() {
            return Ok(matched == Some(entry.len()));
        }
        for &byte in block {
            matched = match matched {
                Some(length) if byte == 0 && length == entry.len() => return Ok(true),
                _ if byte == 0 => Some(0),
                Some(length) if entry.get(length) == Some(&byte) => Some(length + 1),
                _ => None,
            };
        }
        let length = block.len();
        text.consume(length);
    }
}

/// Clock ticks from boot to now, to compare with [`Process::started`].
pub(super) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; the clock exists since Linux 2.6.39.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, std::ptr::from_mut(&mut time)) };
    // SAFETY: takes an integer.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    seconds.unwrap_or(0) * per_second + nanos.unwrap_or(0) * per_second / 1_000_000_000
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

// Processes that were the manager's descendants before the first launch: background jobs of the
// script that executed the manager.

/// The manager's descendants from before the first launch, as after `sleep 300 & exec stayput run
/// …`. They do not belong to the engine: reported as strangers, never signalled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inherited {
    /// Start times by pid.
    processes: BTreeMap<u32, u64>,
}

impl Inherited {
    /// Finds the processes; to be called before the first launch. Usually there are no children,
    /// and this costs one system call.
    ///
    /// # Errors
    /// `/proc` cannot be used. Then nothing is known about such processes.
    pub fn find() -> Result<Self, ProcUnusable> {
        check()?;
        if signals::children() == Children::None {
            return Ok(Self::default());
        }
        let (processes, _) = processes()?;
        Ok(Self::among(&processes))
    }

    fn among(processes: &[Process]) -> Self {
        let mut found = BTreeSet::from([own_pid()]);
        // A child may be listed before its parent, so repeat until nothing more is found.
        loop {
            let before = found.len();
            let children = processes.iter().filter(|process| found.contains(&process.parent));
            let children: Vec<u32> = children.map(|process| process.pid).collect();
            found.extend(children);
            if found.len() == before {
                break;
            }
        }
        found.remove(&own_pid());
        let inherited = processes.iter().filter(|process| found.contains(&process.pid));
        let mut own = Self::default();
        own.processes.extend(inherited.map(|process| (process.pid, process.started)));
        own
    }

    /// True if there were no such processes.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// True if this is one of the processes, and not a later one with its pid.
    pub(super) fn contains(&self, process: &Process) -> bool {
        self.processes.get(&process.pid) == Some(&process.started)
    }
}

// The engine's `oom_score_adj`: when memory runs out, the JVM must be killed before the manager,
// which then reports why. The engine's processes are also recognised by it.

/// Amount by which the engine's value is above the manager's, so that the kernel chooses the engine first.
const RAISE: i32 = 100;
const MAX_OOM_SCORE: i32 = 1000;

/// The `oom_score_adj` that the engine is launched with. `None` where our own cannot be read.
/// Raising needs no privilege.
pub(super) fn raised_oom_score() -> Option<i32> {
    oom_score_adj("self").map(|own| (own + RAISE).min(MAX_OOM_SCORE))
}

/// The `oom_score_adj` that only processes of the engine have: every process gets it from its
/// parent and keeps it in another session, as another user and without an environment. A process of
/// `kubectl exec` has the container's, as the manager has. `None` if the manager already has the
/// highest (a pod of the QoS class `BestEffort`).
pub(super) fn oom_mark() -> Option<i32> {
    raised_oom_score().filter(|&raised| oom_score_adj("self") != Some(raised))
}

/// True if a process has this value. Never waits for the process.
pub(super) fn has_oom_score(pid: u32, mark: i32) -> bool {
    oom_score_adj(&pid.to_string()) == Some(mark)
}

fn oom_score_adj(process: &str) -> Option<i32> {
    fs::read_to_string(format!("/proc/{process}/oom_score_adj")).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::own_pid;

    const STAT: &str = "42 (a) b) (c) S 7 42 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3";

    #[test]
    fn a_name_may_hold_spaces_and_parentheses() {
        let process = parse_stat(STAT.as_bytes()).unwrap();
        assert_eq!((process.pid, process.parent, process.session), (42, 7, 41));
        assert_eq!((process.started, process.name.as_str()), (98765, "a) b) (c"));
        assert!(process.alive && !process.uninterruptible);
    }

    #[test]
    fn zombies_are_dead_unless_other_threads_run() {
        let zombie = parse_stat(STAT.replace(") S", ") Z").as_bytes()).unwrap();
        assert!(!zombie.alive);
        let threads = STAT.replace(") S", ") Z").replace("20 0 1 0", "20 0 9 0");
        assert!(parse_stat(threads.as_bytes()).unwrap().alive);
        assert!(parse_stat(STAT.replace(") S", ") D").as_bytes()).unwrap().uninterruptible);
    }

    #[test]
    fn torn_stat_lines_are_no_process() {
        for length in 0..STAT.rfind(" 98765").unwrap() {
            assert_eq!(parse_stat(&STAT.as_bytes()[..length]), None, "{length}");
        }
    }

    #[test]
    fn only_a_whole_entry_counts() {
        let environ = b"A=1\0XRUN=ab\0RUN=abc\0RUN=ab\0Z=\0";
        for (entry, found) in
            [("RUN=ab", true), ("RUN=a", false), ("RUN=abc", true), ("UN=ab", false)]
        {
            for capacity in [1, 3, 4096] {
                let text = BufReader::with_capacity(capacity, &environ[..]);
                assert_eq!(holds_entry(text, entry.as_bytes()).unwrap(), found, "{entry}");
            }
        }
        assert!(holds_entry(&b"RUN=ab"[..], b"RUN=ab").unwrap(), "unended last entry");
        assert!(!holds_entry(&b""[..], b"RUN=ab").unwrap());
    }

    #[test]
    fn the_effective_uid_counts() {
        assert_eq!(
            parse_effective_uid("Name:\tx\nUid:\t0\t1000\t0\t0\nGid:\t5\t5\t5\t5\n"),
            Some(1000)
        );
        assert_eq!(parse_effective_uid("Name:\tx\n"), None);
    }

    #[test]
    fn finds_ourselves() {
        let (processes, _) = processes().unwrap();
        let own = processes.iter().find(|process| process.pid == own_pid()).unwrap();
        assert!(own.alive && own.started <= now());
        assert!(now() - own.started < 100 * 3600);
        let mut environ = std::env::vars_os().map(|(name, value)| [name, value].join("=".as_ref()));
        let any = environ.next().unwrap();
        assert_eq!(carries(own_pid(), any.as_encoded_bytes()), Carries::Yes);
    }

    #[test]
    fn the_manager_itself_never_has_the_mark() {
        let own = oom_score_adj("self").unwrap();
        assert!(has_oom_score(own_pid(), own));
        assert_eq!(oom_mark(), (own < MAX_OOM_SCORE).then_some((own + RAISE).min(MAX_OOM_SCORE)));
        assert!(!oom_mark().is_some_and(|oom_mark| has_oom_score(own_pid(), oom_mark)));
    }
}
