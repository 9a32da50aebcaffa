//! Processes of an earlier run whose manager was killed and was not PID 1. As PID 1 its end is the end of
//! all; here the kernel ends only the leader, and whatever has left the leader's session lives on.

use std::collections::BTreeSet;

use super::delivery;
use super::identity::own_pid;
use super::procfs::{self, Carries, Process};
use super::tree::RUN_VARIABLE;

/// Why an earlier run is not over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeftBehind {
    /// They were sent KILL.
    #[error("processes of an earlier run, whose manager was killed, still live: {}", listed(.0))]
    Killed(Vec<u32>),
    /// Nothing was signalled.
    #[error(
        "another stayput (pid {manager}) still runs the engine of this state directory: end that \
         one, or give this one a --state-dir of its own"
    )]
    Supervised { manager: u32 },
}

fn listed(pids: &[u32]) -> String {
    pids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Kills the living processes of a run whose end no manager has seen, as the end of PID 1 would. Does nothing
/// where `/proc` does not show processes. Blocks on `/proc`.
///
/// # Errors
/// There were some: ask again until there are none.
pub fn end_leftovers(run: &str) -> Result<(), LeftBehind> {
    let Ok((processes, _)) = procfs::processes() else { return Ok(()) };
    let cookie = format!("{RUN_VARIABLE}={run}").into_bytes();
    let left = left(&processes, own_pid(), |process| {
        procfs::carries(process.pid, &cookie) == Carries::Yes
    })?;
    for process in &left {
        delivery::send(process.pid, process.started, libc::SIGKILL);
    }
    if left.is_empty() {
        return Ok(());
    }
    Err(LeftBehind::Killed(left.iter().map(|process| process.pid).collect()))
}

/// The processes that carry the cookie, without the manager `own` and those it descends from.
///
/// # Errors
/// One is a child of another living manager, which supervises them.
fn left(
    processes: &[Process],
    own: u32,
    carries: impl Fn(&Process) -> bool,
) -> Result<Vec<&Process>, LeftBehind> {
    let find = |pid: u32| processes.iter().find(|process| process.pid == pid);
    let mut line = BTreeSet::new();
    let mut next = find(own);
    while let Some(process) = next.filter(|process| line.insert(process.pid)) {
        next = find(process.parent);
    }
    // Reading the environment of a process that waits for a disk may wait, too.
    let may_be = |process: &&Process| {
        process.alive && !process.uninterruptible && !line.contains(&process.pid)
    };
    let left: Vec<_> = processes.iter().filter(may_be).filter(|one| carries(one)).collect();
    let name = find(own).map(|own| &own.name);
    let parents = left.iter().filter_map(|process| find(process.parent));
    let mut managers = parents.filter(|parent| {
        Some(&parent.name) == name && !line.contains(&parent.pid) && !left.contains(parent)
    });
    match managers.next() {
        Some(manager) => Err(LeftBehind::Supervised { manager: manager.pid }),
        None => Ok(left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32, name: &str) -> Process {
        let (alive, uninterruptible) = (true, false);
        Process {
            pid,
            parent,
            session: pid,
            started: 1,
            alive,
            uninterruptible,
            name: name.to_owned(),
        }
    }

    /// What is left where the manager is pid 20, below a shell with pid 10.
    fn left_of(others: &[Process], carriers: &[u32]) -> Result<Vec<u32>, LeftBehind> {
        let own = [process(1, 0, "init"), process(10, 1, "stayput"), process(20, 10, "stayput")];
        let all = [&own, others].concat();
        let left = left(&all, 20, |process| carriers.contains(&process.pid))?;
        Ok(left.iter().map(|process| process.pid).collect())
    }

    #[test] // proves JOURNAL-7
    fn only_what_carries_the_cookie_is_left_and_never_our_own_line() {
        let others = [process(30, 1, "java"), process(31, 30, "sh"), process(40, 1, "java")];
        assert_eq!(left_of(&others, &[1, 10, 20, 30, 31]), Ok(vec![30, 31]));
        assert_eq!(left_of(&others, &[]), Ok(vec![]));
    }

    #[test]
    fn an_engine_below_another_manager_is_left_alone() {
        let engine = [process(50, 1, "stayput"), process(51, 50, "java"), process(52, 1, "helper")];
        assert_eq!(left_of(&engine, &[51, 52]), Err(LeftBehind::Supervised { manager: 50 }));
        // A manager that ours descends from adopts orphans as an init does.
        assert_eq!(left_of(&[process(51, 10, "java")], &[51]), Ok(vec![51]));
    }
}
