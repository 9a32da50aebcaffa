//! The engine's `oom_score_adj`: when memory runs out, the JVM must be killed before the manager,
//! which then reports why. The engine's processes are also recognised by it.

use std::fs;

/// Amount by which the engine's value is above the manager's, so that the kernel chooses the engine first.
const RAISE: i32 = 100;
const MAX: i32 = 1000;

/// The `oom_score_adj` that the engine is launched with. `None` where our own cannot be read.
/// Raising needs no privilege.
pub(super) fn raised() -> Option<i32> {
    of("self").map(|own| (own + RAISE).min(MAX))
}

/// The `oom_score_adj` that only processes of the engine have: every process gets it from its
/// parent and keeps it in another session, as another user and without an environment. A process of
/// `kubectl exec` has the container's, as the manager has. `None` if the manager already has the
/// highest (a pod of the QoS class `BestEffort`).
pub(super) fn mark() -> Option<i32> {
    raised().filter(|&raised| of("self") != Some(raised))
}

/// True if a process has this value. Never waits for the process.
pub(super) fn has(pid: u32, mark: i32) -> bool {
    of(&pid.to_string()) == Some(mark)
}

fn of(process: &str) -> Option<i32> {
    fs::read_to_string(format!("/proc/{process}/oom_score_adj")).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::own_pid;

    #[test]
    fn the_manager_itself_never_has_the_mark() {
        let own = of("self").unwrap();
        assert!(has(own_pid(), own));
        assert_eq!(mark(), (own < MAX).then_some((own + RAISE).min(MAX)));
        assert!(!mark().is_some_and(|mark| has(own_pid(), mark)));
    }
}
