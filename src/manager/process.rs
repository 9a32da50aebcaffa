//! Processes: launches the engine, receives signals, waits, and finds and signals the processes of
//! a run.
//!
//! The only module with `unsafe`, and the only caller of `wait` in the shipped binary. It decides
//! nothing: what to launch, signal or kill, and when, is decided by the lifecycle. Linux only.
//!
//! # One task
//! [`launch`], [`Reaper`] and the signals of a [`Tree`] belong to one task. A pid stays reserved
//! until its zombie is reaped, so if one task launches, signals and reaps, a pid cannot become
//! another process in between.

// System calls that no safe crate offers (pidfd, close_range, prctl after fork, waitpid of any
// child with any status) are all here, so that no other module needs `unsafe`.
#![allow(unsafe_code)]

mod fork_exec;
mod launch;
pub mod oom;
mod procfs;
mod replace_program;
mod scan;
mod signal_tree;
mod signals;
mod temp_dir;
mod tree;

use std::path::Path;
use std::sync::OnceLock;
use std::{fs, io};

pub use crate::exit_status::ExitStatus;
pub use fork_exec::{Launched, own_descriptors};
pub use launch::{EnvironmentChanges, Launch, LaunchError, launch};
pub use procfs::{Inherited, ProcUnusable};
pub use replace_program::{
    Checking, HAND_OVER_VARIABLE, KeptListener, Program, check, execute, execute_again,
    handed_over, in_memory, inherited, is_for_this_machine, is_own_program, only_ours_to_write,
    open_program, own_program,
};
pub use scan::{Archive, Member, Scan, Unread};
pub use signal_tree::{Delivery, LeftBehind, end_leftovers};
pub use signals::{Reaped, Reaper, Signals, statuses_of};
pub use temp_dir::{TempDir, TempDirError};
pub use tree::{RUN_VARIABLE, Seen, Tree};

/// The manager's own pid.
pub fn own_pid() -> u32 {
    std::process::id()
}

/// True if the manager is the init of its process namespace: then every orphan of the namespace
/// becomes its child, also orphans that do not descend from the engine.
pub fn is_pid_1() -> bool {
    own_pid() == 1
}

/// Gives the process the name of its program again: one that was executed by a descriptor has the
/// number of that as its name. Only for people who look at the list of processes.
pub fn name_again() {
    let _ = nix::sys::prctl::set_name(c"stayput");
}

/// Makes orphaned descendants the manager's children when it is not PID 1 (a shared process
/// namespace, a developer's shell): otherwise another process would become their parent.
/// Does nothing as PID 1, which has that role already.
///
/// # Errors
/// The kernel refused (it is older than 3.4, or a filter forbids `prctl`).
pub fn become_subreaper() -> io::Result<()> {
    if is_pid_1() {
        return Ok(());
    }
    nix::sys::prctl::set_child_subreaper(true).map_err(io::Error::from)
}

/// Keeps the C allocator's memory small. Call it first, before threads exist.
///
/// glibc gives each thread its own arena and raises its thresholds over time. A manager that shares
/// its container's memory limit with a JVM needs one arena, and must return freed memory.
pub fn tune_allocator() {
    #[cfg(target_env = "gnu")]
    {
        let settings = [
            (libc::M_ARENA_MAX, 1),
            (libc::M_MMAP_THRESHOLD, 64 * 1024),
            (libc::M_TRIM_THRESHOLD, 64 * 1024),
            (libc::M_TOP_PAD, 16 * 1024),
        ];
        for (parameter, value) in settings {
            // SAFETY: mallopt takes two integers and touches only the allocator's own state.
            // If it is refused (0), the default stays, which only costs memory.
            unsafe { libc::mallopt(parameter, value) };
        }
    }
}

/// Unmaps the program's text, and the constants before it. Pages that are used later are mapped
/// again from the page cache. Pages that only the start used (reading settings, keys, the command
/// line), or only requests, are not, and the kernel reclaims them first when the engine needs
/// memory. Best effort: without `/proc` nothing happens.
pub fn unmap_code() {
    // They stay where they are, and this also runs whenever the last connection is closed.
    static MAPPINGS: OnceLock<Vec<(usize, usize)>> = OnceLock::new();
    let mappings = match MAPPINGS.get() {
        Some(mappings) => mappings,
        None => match unchanged_mappings() {
            // Without a free descriptor nothing is found now, but perhaps later.
            none if none.is_empty() => return,
            found => MAPPINGS.get_or_init(|| found),
        },
    };
    for &(start, length) in mappings {
        // SAFETY: the range is a private mapping of our own executable that is not writable and
        // never was, so no page of it was ever changed in memory: the kernel drops the mapping of
        // each page and maps the same content from the file when it is next used.
        unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED) };
    }
}

fn unchanged_mappings() -> Vec<(usize, usize)> {
    let Ok(program) = fs::read_link("/proc/self/exe") else { return Vec::new() };
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().filter_map(|line| unchanged_mapping(line, &program)).collect()
}

/// Address and length of a line of `/proc/self/maps` that is text of `program`, or the constants at
/// the file's beginning. Constants at other offsets are left out: they may be relocated, which
/// cannot be seen there, and then exist only in memory. The first page holds the ELF header and is
/// never relocated, nor is the rest of its segment.
fn unchanged_mapping(line: &str, program: &Path) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let first = fields.next()?.bytes().all(|digit| digit == b'0');
    let file = fields.nth(2)?;
    let unchanged = permissions == "r-xp" || (permissions == "r--p" && first);
    if !unchanged || Path::new(file) != program {
        return None;
    }
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    Some((start, end.checked_sub(start)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_the_same_in_the_file_is_released() {
        let program = Path::new("/stayput");
        let text = "7f0000001000-7f0000003000 r-xp 00001000 fe:00 42    /stayput";
        assert_eq!(unchanged_mapping(text, program), Some((0x7f00_0000_1000, 0x2000)));
        let head = "7f0000000000-7f0000001000 r--p 00000000 fe:00 42    /stayput";
        assert_eq!(unchanged_mapping(head, program), Some((0x7f00_0000_0000, 0x1000)));
        for other in [
            "7f0000003000-7f0000004000 r--p 00003000 fe:00 42    /stayput",
            "7f0000004000-7f0000005000 rw-p 00004000 fe:00 42    /stayput",
            "7f0000001000-7f0000003000 r-xp 00001000 fe:00 42    /lib/libc.so.6",
            "7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0     [vdso]",
            "7f0000001000-7f0000003000 rwxp 00000000 00:00 0",
            "torn",
            "",
        ] {
            assert_eq!(unchanged_mapping(other, program), None, "{other}");
        }
    }

    #[test]
    fn the_program_goes_on() {
        unmap_code();
        assert!(fs::read_to_string("/proc/self/maps").is_ok());
    }
}
