//! What the manager is among processes, and how it prepares itself.

use std::io;

/// The manager's own pid.
pub fn own_pid() -> u32 {
    std::process::id()
}

/// Whether the manager is its process namespace's init: every orphan of the namespace is then its
/// child, also those it has nothing to do with.
pub fn is_pid_1() -> bool {
    own_pid() == 1
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
/// glibc gives each thread an arena of its own and raises its thresholds as it goes; a manager that
/// shares its container's limit with a JVM wants one arena, and freed memory given back.
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
            // Refusal (0) leaves the default, which costs memory and nothing else.
            unsafe { libc::mallopt(parameter, value) };
        }
    }
}
