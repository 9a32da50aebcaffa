//! Decides from one list of all processes which of them belong to a run.

use std::collections::{BTreeMap, BTreeSet};

use super::command_line::CommandLine;
use super::inherited::Inherited;
use super::procfs::Process;

/// Facts about a run that are known before the processes are read.
#[derive(Debug)]
pub(super) struct Run<'a> {
    /// The manager's own pid: orphans become its children.
    pub(super) own: u32,
    /// Pid of the leader, which leads the run's session.
    pub(super) leader: u32,
    /// Time when the leader was reaped, in ticks; until then its pid is certainly the leader's.
    pub(super) leader_reaped_at: Option<u64>,
    /// True if every orphan descends from a process that the manager launched: the manager is not
    /// PID 1, and had no children before the first launch.
    pub(super) sole_parent: bool,
    /// The manager's descendants from before the first launch: never part of the run.
    pub(super) inherited: &'a Inherited,
    /// Members that were seen before, by pid.
    pub(super) known: &'a BTreeMap<u32, Known>,
}

/// Stored facts about a member.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) started: u64,
    /// Kernel's name of the program, and its arguments, once the member was seen to be a server
    /// JVM. The arguments are not read again: reading can hang with a process that waits for a
    /// disk, as a server JVM may when it is to be stopped.
    pub(super) server_jvm: Option<(String, CommandLine)>,
}

impl Known {
    pub(super) fn since(started: u64) -> Self {
        Self { started, server_jvm: None }
    }
}

impl Run<'_> {
    /// The pids that belong to the run. `claims` is called with an adopted orphan whose descent is not known:
    /// true if something that the orphan got from the leader shows that it belongs to the run.
    pub(super) fn members(
        &self,
        processes: &[Process],
        mut claims: impl FnMut(&Process) -> bool,
    ) -> BTreeSet<u32> {
        let mut members = BTreeSet::new();
        for process in processes {
            if self.is_certain(process) || self.is_claimed(process, &mut claims) {
                members.insert(process.pid);
            }
        }
        // A child may be listed before its parent, so repeat until nothing more is found.
        loop {
            let before = members.len();
            let sessions = self.sessions(processes, &members);
            for process in processes {
                let descends = members.contains(&process.parent);
                // A child of the manager in a member's session was forked by the run: no process
                // can join an existing session, and shells of kubectl have their own.
                let shares = self.adopted(process) && sessions.contains(&process.session);
                if (descends || shares) && process.pid != self.own {
                    members.insert(process.pid);
                }
            }
            if members.len() == before {
                return members;
            }
        }
    }

    /// True for a child of the manager that was not launched for this run.
    pub(super) fn adopted(&self, process: &Process) -> bool {
        let leader = process.pid == self.leader && self.leader_reaped_at.is_none();
        process.parent == self.own && !leader
    }

    fn is_certain(&self, process: &Process) -> bool {
        (process.pid == self.leader && self.leader_reaped_at.is_none())
            || self.known.get(&process.pid).is_some_and(|known| known.started == process.started)
    }

    fn is_claimed(&self, process: &Process, claims: &mut impl FnMut(&Process) -> bool) -> bool {
        self.adopted(process)
            && !self.is_certain(process)
            && !self.inherited.contains(process)
            && (self.sole_parent || self.is_in_leaders_session(process) || claims(process))
    }

    /// True if the process was forked while the session had the leader's number, by a process in
    /// that session. Later, that number could belong to a new session.
    fn is_in_leaders_session(&self, process: &Process) -> bool {
        process.session == self.leader
            && process.pid != self.leader
            && self.leader_reaped_at.is_none_or(|reaped| process.started <= reaped)
    }

    fn sessions(&self, processes: &[Process], members: &BTreeSet<u32>) -> BTreeSet<u32> {
        let own = processes.iter().find(|process| process.pid == self.own).map(|own| own.session);
        let alive = processes
            .iter()
            .filter(|process| process.alive && members.contains(&process.pid))
            .map(|process| process.session);
        let mut sessions = BTreeSet::new();
        // 0 stands for every session outside of the manager's namespace.
        sessions.extend(alive.filter(|&session| session != 0 && Some(session) != own));
        sessions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u32 = 1;
    const LEADER: u32 = 10;

    fn process(pid: u32, parent: u32, session: u32, started: u64) -> Process {
        let (alive, uninterruptible) = (true, false);
        Process { pid, parent, session, started, alive, uninterruptible, name: String::new() }
    }

    /// Members of a run led by pid 10; pids in `cookies` claim to belong.
    fn members(
        processes: &[Process],
        known: &[(u32, u64)],
        reaped: Option<u64>,
        cookies: &[u32],
    ) -> Vec<u32> {
        let known = known.iter().map(|&(pid, started)| (pid, Known::since(started))).collect();
        let run = Run {
            own: OWN,
            leader: LEADER,
            leader_reaped_at: reaped,
            sole_parent: false,
            inherited: &Inherited::default(),
            known: &known,
        };
        run.members(processes, |process| cookies.contains(&process.pid)).into_iter().collect()
    }

    #[test]
    fn descendants_belong_in_whatever_order_and_session() {
        let all = [
            process(1, 0, 1, 0),
            process(5, 12, 5, 9), // pids wrapped around: a child with a smaller pid
            process(10, 1, 10, 1),
            process(11, 10, 10, 2),
            process(12, 11, 12, 3),
            process(20, 0, 20, 5), // kubectl exec
            process(21, 20, 20, 6),
            process(22, 1, 20, 6), // its orphan
        ];
        assert_eq!(members(&all, &[], None, &[]), [5, 10, 11, 12]);
    }

    #[test]
    fn an_orphan_belongs_by_memory_by_cookie_or_by_session() {
        let all = [
            process(1, 0, 1, 0),
            process(30, 1, 30, 7),  // seen before as a descendant
            process(31, 30, 31, 8), // its child
            process(40, 1, 40, 7),  // carries the cookie
            process(50, 1, 10, 7),  // in the leader's session
            process(51, 1, 30, 9),  // in a member's session
            process(60, 1, 60, 7),  // a stranger
            process(61, 60, 60, 7),
        ];
        assert_eq!(members(&all, &[(30, 7)], Some(20), &[40, 61]), [30, 31, 40, 50, 51]);
    }

    #[test]
    fn a_recycled_pid_or_session_number_does_not_belong() {
        let all = [
            process(1, 0, 1, 0),
            process(10, 0, 10, 50), // a shell that got the leader's pid after it was reaped
            process(30, 0, 30, 50), // ... a member's pid
            process(70, 1, 10, 60), // that shell's orphan
        ];
        assert_eq!(members(&all, &[(30, 7)], Some(20), &[]), [] as [u32; 0]);
    }

    #[test]
    fn as_subreaper_every_orphan_belongs() {
        let all = [
            process(7, 3, 3, 0),
            process(60, 7, 60, 7),
            process(61, 60, 60, 7),
            process(8, 3, 3, 1),
        ];
        let known = BTreeMap::new();
        let run = Run {
            own: 7,
            leader: 10,
            leader_reaped_at: Some(9),
            sole_parent: true,
            inherited: &Inherited::default(),
            known: &known,
        };
        let members = run.members(&all, |_| false);
        assert_eq!(members.into_iter().collect::<Vec<_>>(), [60, 61]);
    }

    #[test]
    fn sessions_from_outside_and_our_own_bind_nobody() {
        let all = [
            process(1, 0, 0, 0),
            process(10, 1, 0, 1), // shown in session 0: from outside
            process(60, 1, 0, 7),
        ];
        assert_eq!(members(&all, &[], None, &[]), [10]);
    }
}
