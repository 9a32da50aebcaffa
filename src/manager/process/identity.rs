//! The manager's role among processes, and its preparations at the start.

use std::io;

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
