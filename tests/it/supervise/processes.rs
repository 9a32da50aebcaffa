//! What `/proc` shows of other processes, and waiting with a deadline.

use std::fmt::Debug;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::programs::children;
pub(super) use crate::support::wait::{DEADLINE, eventually};

/// Calls `poll` until it returns `expected`.
pub(super) fn becomes<T: PartialEq + Debug>(expected: &T, mut poll: impl FnMut() -> T) {
    let mut last = None;
    let until = Instant::now() + DEADLINE;
    while last.as_ref() != Some(expected) {
        assert!(Instant::now() < until, "{last:?} does not become {expected:?}");
        thread::sleep(Duration::from_millis(5));
        last = Some(poll());
    }
}

/// Whether the process exists and is no zombie. One whose first thread is a zombie while others wait
/// for the disk still holds its descriptors.
pub(super) fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z' && state != 'X')
        || field(pid, "Threads").is_some_and(|threads| threads > 1)
}

/// The letter of the process's state; `None` if it does not exist.
pub(super) fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Name of the program the process runs.
pub(super) fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// A field of `/proc/PID/status`, such as `PPid`.
pub(super) fn field(pid: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Everything that descends from `pid`, zombies included, the process itself not.
pub(super) fn descendants(pid: u32) -> Vec<u32> {
    let mut found = children(pid);
    let mut at = 0;
    while let Some(&next) = found.get(at) {
        found.extend(children(next));
        at += 1;
    }
    found
}

/// How many descriptors the process has open.
pub(super) fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// The flags with which the process has a descriptor open.
pub(super) fn descriptor_flags(pid: u32, number: u32) -> i32 {
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).expect("it is open");
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).expect("flags");
    i32::from_str_radix(flags.trim(), 8).expect("a number")
}

/// How often the threads of the process went to sleep by themselves, so how often they had been
/// awake.
pub(super) fn wake_ups(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let counts = threads.filter_map(|thread| {
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    counts.sum()
}

/// Waits until no thread of the process has work left: none was woken for a while.
pub(super) fn until_rest(pid: u32) {
    eventually("rest", || {
        let before = wake_ups(pid);
        thread::sleep(Duration::from_millis(300));
        (wake_ups(pid) == before).then_some(())
    });
}
