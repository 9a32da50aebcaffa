//! Finds and classifies all processes of a run of the engine.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::identity::own_pid;
use super::inherited::Inherited;
use super::membership::{Known, Run};
use super::oom_score;
use super::procfs::{self, Carries, ProcUnusable, Process};
use super::scan::{Member, Scan, read_command, read_within};
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
    pub(super) leader: u32,
    /// Time in clock ticks since boot when the leader was reaped; from then on the pid may belong
    /// to another process.
    pub(super) leader_reaped_at: Option<u64>,
    cookie: Vec<u8>,
    /// The `oom_score_adj` that the leader was launched with.
    oom_score: Option<i32>,
    sole_parent: bool,
    inherited: Inherited,
    reader: Option<Worker>,
    known: BTreeMap<u32, Known>,
    /// Uids that members were seen with.
    uids: BTreeSet<u32>,
}

/// Observations of a tree that cannot be made again once parents have ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Start times of members, by pid.
    #[serde(default)]
    known: BTreeMap<u32, u64>,
    #[serde(default)]
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
        Self {
            leader,
            leader_reaped_at: None,
            cookie: format!("{RUN_VARIABLE}={cookie}").into_bytes(),
            oom_score: oom_score::mark(),
            sole_parent,
            inherited: Inherited::default(),
            reader: None,
            known: BTreeMap::new(),
            uids: BTreeSet::new(),
        }
    }

    /// Excludes processes from before the first launch. An orphan may then descend from them, so it
    /// belongs to the run only if there is a sign of it, as under PID 1.
    #[must_use]
    pub fn beside(self, inherited: &Inherited) -> Self {
        let sole_parent = self.sole_parent && inherited.is_empty();
        Self { sole_parent, inherited: inherited.clone(), ..self }
    }

    /// Reads from processes on this thread, so that one whose memory hangs does not make us wait.
    #[must_use]
    pub fn reading_on(self, reader: Option<Worker>) -> Self {
        Self { reader, ..self }
    }

    /// The observations so far.
    pub fn seen(&self) -> Seen {
        let mut seen = Seen { known: BTreeMap::new(), uids: self.uids.clone() };
        seen.known.extend(self.known.iter().map(|(&pid, known)| (pid, known.started)));
        seen
    }

    /// The tree of a run that another program has launched, with that program's observations.
    #[must_use]
    pub fn having_seen(mut self, seen: Seen) -> Self {
        self.uids.extend(seen.uids);
        let known = seen.known.into_iter();
        self.known.extend(known.map(|(pid, started)| (pid, Known::since(started))));
        self
    }

    pub(super) fn reader(&self) -> Option<&Worker> {
        self.reader.as_ref()
    }

    /// The leader's pid at the launch.
    pub fn leader(&self) -> u32 {
        self.leader
    }

    /// The leader's pid, until it was reaped.
    pub fn unreaped_leader(&self) -> Option<u32> {
        self.leader_reaped_at.is_none().then_some(self.leader)
    }

    /// Notes that the leader was reaped: from now on its pid may belong to another process.
    pub fn leader_reaped(&mut self) {
        self.leader_reaped_at = Some(procfs::now());
        self.known.remove(&self.leader);
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
                    leader if self.is_leader(leader.pid) => scan.leader = Some(leader),
                    server if server.server_jvm => scan.server.push(server),
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

    fn is_leader(&self, pid: u32) -> bool {
        pid == self.leader && self.leader_reaped_at.is_none()
    }

    /// Reads every process and remembers the members. Reads only files that cannot hang, except the
    /// environment of orphans about which nothing else is known.
    pub(super) fn snapshot(&mut self) -> Result<Snapshot, ProcUnusable> {
        let (processes, unreadable) = procfs::processes()?;
        let run = Run {
            own: own_pid(),
            leader: self.leader,
            leader_reaped_at: self.leader_reaped_at,
            sole_parent: self.sole_parent,
            inherited: &self.inherited,
            known: &self.known,
        };
        let members = run.members(&processes, |orphan| self.claims_to_belong(orphan));
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
        if self.oom_score.is_some_and(|score| oom_score::has(orphan.pid, score)) {
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
        let mut before = std::mem::take(&mut self.known);
        for process in processes.iter().filter(|process| members.contains(&process.pid)) {
            let started = process.started;
            let same = before.remove(&process.pid).filter(|known| known.started == started);
            let known = same.unwrap_or(Known::since(started));
            self.known.insert(process.pid, known);
        }
    }

    fn describe(&mut self, process: &Process) -> Member {
        let known = self.known.get_mut(&process.pid);
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
