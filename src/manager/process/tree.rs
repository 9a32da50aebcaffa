//! Finds all processes of a run of the engine, and decides which of them belong to it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::own_pid;
use super::procfs::{self, Carries, Inherited, ProcUnusable, Process};
use super::scan::{CommandLine, Member, Scan, read_command, read_within};
use crate::worker::Worker;

/// The variable that carries a run's cookie in the engine's environment.
pub const RUN_VARIABLE: &str = "STAYPUT_RUN";

/// Why a child may exist that no scan finds.
const HIDDEN: &str = "the kernel knows of a child that /proc does not show; mount /proc without \
    hidepid, or run manager and engine under one uid";

/// The processes of one run. Scan it once early (when the engine has become ready): when a parent
/// has ended, descent is only known if it was seen before.
#[derive(Debug)]
pub struct Tree {
    run: Run,
    cookie: Vec<u8>,
    /// The `oom_score_adj` that the leader was launched with.
    oom_score: Option<i32>,
    reader: Option<Worker>,
    /// Uids that members were seen with.
    uids: BTreeSet<u32>,
}

/// Observations of a tree that cannot be made again once parents have ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Start times of members, by pid.
    known: BTreeMap<u32, u64>,
    uids: BTreeSet<u32>,
}

/// All processes at one time.
pub(super) struct Snapshot {
    processes: Vec<Process>,
    members: BTreeSet<u32>,
    /// Pids whose entries may not be read.
    unreadable: Vec<u32>,
}

impl Snapshot {
    pub(super) fn members(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter().filter(|process| self.members.contains(&process.pid))
    }

    /// Children of the manager that have ended and are not reaped, of the run or not: for a process
    /// that has ended that may not be known.
    pub(super) fn ended_children(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter().filter(|process| !process.alive && process.parent == own_pid())
    }
}

impl Tree {
    /// The tree of a run whose leader was just launched, with [`RUN_VARIABLE`] set to `cookie`.
    /// `sole_parent`: the manager is not PID 1, so every adopted process descends from one that it
    /// launched or [inherited](Self::beside).
    pub fn new(leader: u32, cookie: &str, sole_parent: bool) -> Self {
        let run = Run {
            own: own_pid(),
            leader,
            leader_reaped_at: None,
            sole_parent,
            inherited: Inherited::default(),
            known: BTreeMap::new(),
        };
        Self {
            run,
            cookie: format!("{RUN_VARIABLE}={cookie}").into_bytes(),
            oom_score: procfs::oom_mark(),
            reader: None,
            uids: BTreeSet::new(),
        }
    }

    /// Excludes processes from before the first launch. An orphan may then descend from them, so it
    /// belongs to the run only if there is a sign of it, as under PID 1.
    #[must_use]
    pub fn beside(mut self, inherited: &Inherited) -> Self {
        self.run.sole_parent &= inherited.is_empty();
        self.run.inherited = inherited.clone();
        self
    }

    /// Reads from processes on this thread, so that one whose memory hangs does not make us wait.
    #[must_use]
    pub fn reading_on(self, reader: Option<Worker>) -> Self {
        Self { reader, ..self }
    }

    /// The observations so far.
    pub fn seen(&self) -> Seen {
        let mut seen = Seen { known: BTreeMap::new(), uids: self.uids.clone() };
        seen.known.extend(self.run.known.iter().map(|(&pid, known)| (pid, known.started)));
        seen
    }

    /// The tree of a run that another program has launched, with that program's observations.
    #[must_use]
    pub fn having_seen(mut self, seen: Seen) -> Self {
        self.uids.extend(seen.uids);
        let known = seen.known.into_iter();
        self.run.known.extend(known.map(|(pid, started)| (pid, Known::since(started))));
        self
    }

    pub(super) fn reader(&self) -> Option<&Worker> {
        self.reader.as_ref()
    }

    /// The leader's pid at the launch.
    pub fn leader(&self) -> u32 {
        self.run.leader
    }

    /// The leader's pid, until it was reaped.
    pub fn unreaped_leader(&self) -> Option<u32> {
        self.run.leader_reaped_at.is_none().then_some(self.run.leader)
    }

    /// Notes that the leader was reaped: from now on its pid may belong to another process.
    pub fn leader_reaped(&mut self) {
        self.run.leader_reaped_at = Some(procfs::now());
        self.run.known.remove(&self.run.leader);
    }

    /// Reads every process once. Takes some 10 µs per process of the container.
    pub fn scan(&mut self) -> Scan {
        let snapshot = match self.snapshot() {
            Ok(snapshot) => snapshot,
            Err(error) => {
                let mut scan = Scan::default();
                scan.ask_for_others(&error.to_string());
                return scan;
            }
        };
        let mut scan = Scan::default();
        for process in snapshot.processes.iter().filter(|process| process.alive) {
            if snapshot.members.contains(&process.pid) {
                self.uids.extend(procfs::effective_uid(process.pid));
                let member = self.describe(process);
                match member {
                    leader if self.run.is_leader(leader.pid) => scan.leader = Some(leader),
                    server if server.may_be_server() => scan.server.push(server),
                    other => scan.stragglers.push(other),
                }
            } else if process.parent == own_pid() {
                scan.strangers
                    .push(Member::new(process, read_command(process, self.reader.as_ref())));
            }
        }
        // What a child has forked right before its end may not be in the list.
        scan.unreaped = scan.shows_none() && snapshot.ended_children().next().is_some();
        // An entry that may not be read could be a child; if there is none, the found child is the
        // one.
        if scan.shows_none() && (scan.strangers.is_empty() || !snapshot.unreadable.is_empty()) {
            scan.ask_for_others(HIDDEN);
        }
        scan
    }

    /// Reads every process and remembers the members. Reads only files that cannot hang, except the
    /// environment of orphans about which nothing else is known.
    pub(super) fn snapshot(&mut self) -> Result<Snapshot, ProcUnusable> {
        let (processes, unreadable) = procfs::processes()?;
        let members = self.run.members(&processes, |orphan| self.claims_to_belong(orphan));
        self.remember(&processes, &members);
        Ok(Snapshot { processes, members, unreadable })
    }

    /// True if an orphan has the engine's `oom_score_adj`, carries the cookie, or hides its
    /// environment and has the engine's uid.
    fn claims_to_belong(&self, orphan: &Process) -> bool {
        // A zombie shows nothing.
        if !orphan.alive {
            return false;
        }
        if self.oom_score.is_some_and(|score| procfs::has_oom_score(orphan.pid, score)) {
            return true;
        }
        // Reading the environment of a process that waits for a disk may wait, too.
        if orphan.uninterruptible {
            return false;
        }
        let (pid, cookie) = (orphan.pid, self.cookie.clone());
        match read_within(self.reader.as_ref(), move || procfs::carries(pid, &cookie)) {
            Some(Carries::Yes) => true,
            Some(Carries::No) | None => false,
            Some(Carries::Unreadable) => {
                procfs::effective_uid(orphan.pid).is_some_and(|uid| self.uids.contains(&uid))
            }
        }
    }

    fn remember(&mut self, processes: &[Process], members: &BTreeSet<u32>) {
        let mut before = std::mem::take(&mut self.run.known);
        for process in processes.iter().filter(|process| members.contains(&process.pid)) {
            let started = process.started;
            let same = before.remove(&process.pid).filter(|known| known.started == started);
            let known = same.unwrap_or(Known::since(started));
            self.run.known.insert(process.pid, known);
        }
    }

    fn describe(&mut self, process: &Process) -> Member {
        let known = self.run.known.get_mut(&process.pid);
        let remembered = known.as_ref().and_then(|known| known.server_jvm.as_ref());
        if let Some((name, command)) = remembered
            && *name == process.name
        {
            return Member::new(process, command.clone());
        }
        let command = read_command(process, self.reader.as_ref());
        if let Some(known) = known {
            known.server_jvm = command.server_jvm.then(|| (process.name.clone(), command.clone()));
        }
        Member::new(process, command)
    }
}

/// Facts about a run that decide which processes belong to it.
#[derive(Debug)]
struct Run {
    /// The manager's own pid: orphans become its children.
    own: u32,
    /// Pid of the leader, which leads the run's session.
    leader: u32,
    /// Time when the leader was reaped, in clock ticks since boot. From then on its pid may belong to
    /// another process.
    leader_reaped_at: Option<u64>,
    /// True if every orphan descends from a process that the manager launched: the manager is not
    /// PID 1, and had no children before the first launch.
    sole_parent: bool,
    /// The manager's descendants from before the first launch: never part of the run.
    inherited: Inherited,
    /// Members that were seen before, by pid.
    known: BTreeMap<u32, Known>,
}

/// Stored facts about a member.
#[derive(Debug)]
struct Known {
    started: u64,
    /// Kernel's name of the program, and its arguments, once the member was seen to be a server
    /// JVM. The arguments are not read again: reading can hang with a process that waits for a
    /// disk, as a server JVM may when it is to be stopped.
    server_jvm: Option<(String, CommandLine)>,
}

impl Known {
    fn since(started: u64) -> Self {
        Self { started, server_jvm: None }
    }
}

impl Run {
    /// The pids that belong to the run. `claims` is called with an adopted orphan whose descent is not known:
    /// true if something that the orphan got from the leader shows that it belongs to the run.
    fn members(
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

    fn is_leader(&self, pid: u32) -> bool {
        pid == self.leader && self.leader_reaped_at.is_none()
    }

    /// True for a child of the manager that was not launched for this run.
    fn adopted(&self, process: &Process) -> bool {
        process.parent == self.own && !self.is_leader(process.pid)
    }

    fn is_certain(&self, process: &Process) -> bool {
        self.is_leader(process.pid)
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
            inherited: Inherited::default(),
            known,
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
        let run = Run {
            own: 7,
            leader: 10,
            leader_reaped_at: Some(9),
            sole_parent: true,
            inherited: Inherited::default(),
            known: BTreeMap::new(),
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
