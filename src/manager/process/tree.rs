//! Everything that belongs to a run of the engine: found, told apart, signalled, killed.

use std::collections::{BTreeMap, BTreeSet};

use super::command_line::CommandLine;
use super::delivery::{self, Delivery};
use super::identity::own_pid;
use super::inherited::Inherited;
use super::membership::Run;
use super::procfs::{self, Carries, Process};
use super::reaper::{self, Children};

/// The variable that carries a run's cookie in the engine's environment.
pub const RUN_VARIABLE: &str = "STAYPUT_RUN";

/// Why a child may be there that no look shows.
const HIDDEN: &str = "the kernel knows of a child that /proc does not show; mount /proc without \
    hidepid, or run manager and engine under one uid";

/// Looks in [`Tree::kill_all`]. Each kills what it finds, and what is being killed cannot fork, so
/// only a race between its newest forks and the next look needs another one.
const KILL_ROUNDS: usize = 100;

/// A live process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its pid.
    pub pid: u32,
    /// Program, and script or main class; no other arguments, which may be secret.
    pub command: String,
    /// It is a JVM: QUIT makes it print its threads.
    pub jvm: bool,
    /// It is the engine's server JVM, which holds `node.lock`.
    pub server_jvm: bool,
    /// In an uninterruptible wait (D): KILL does not end it before the wait ends.
    pub uninterruptible: bool,
    started: u64,
}

/// Who was there at one look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// The process that was launched, while it lives.
    pub leader: Option<Member>,
    /// The run's server JVMs other than the leader.
    pub server: Vec<Member>,
    /// All other processes of the run.
    pub stragglers: Vec<Member>,
    /// Adopted orphans that do not belong to the run. Never signalled.
    pub strangers: Vec<Member>,
    /// The kernel knows of children that could not be looked at, so nothing seen is not nothing
    /// there: why, and what to do, in a sentence. None where the kernel says that none is left.
    pub unseen: Option<String>,
}

impl Scan {
    /// Whether it is certain that nothing of the run lives.
    pub fn is_empty(&self) -> bool {
        let Self { leader, server, stragglers, strangers: _, unseen } = self;
        leader.is_none() && server.is_empty() && stragglers.is_empty() && unseen.is_none()
    }

    /// Every live process of the run, the leader first.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.leader.iter().chain(&self.server).chain(&self.stragglers)
    }
}

/// The processes of one run. It remembers whom it has seen, so look once early (when the engine has
/// become ready): descent is lost with a parent's death, and remembered only if seen before.
#[derive(Debug)]
pub struct Tree {
    leader: u32,
    leader_reaped_at: Option<u64>,
    cookie: Vec<u8>,
    sole_parent: bool,
    inherited: Inherited,
    known: BTreeMap<u32, Known>,
    /// Uids that members were seen under.
    uids: BTreeSet<u32>,
}

/// What is remembered of a member.
#[derive(Debug)]
struct Known {
    started: u64,
    /// Set once it was seen to be a server JVM, with the kernel's name of the program it executed
    /// then. Its arguments are not read again: reading can hang with a process that waits for a
    /// disk, as a server JVM may when it is to be stopped.
    server_jvm: Option<(String, CommandLine)>,
}

/// One look at all processes.
struct Look {
    processes: Vec<Process>,
    members: BTreeSet<u32>,
    unreadable: Vec<u32>,
}

impl Tree {
    /// The tree of a run whose leader was just launched, with [`RUN_VARIABLE`] set to `cookie`.
    /// `sole_parent`: we are not PID 1, so whatever we adopt descends from what we launched, or from
    /// what we [inherited](Self::beside).
    pub fn new(leader: u32, cookie: &str, sole_parent: bool) -> Self {
        Self {
            leader,
            leader_reaped_at: None,
            cookie: format!("{RUN_VARIABLE}={cookie}").into_bytes(),
            sole_parent,
            inherited: Inherited::default(),
            known: BTreeMap::new(),
            uids: BTreeSet::new(),
        }
    }

    /// Leaves what was ours before the first launch out of it. An orphan may then descend from
    /// that, and belongs to the run only where something tells so, as under PID 1.
    #[must_use]
    pub fn beside(self, inherited: &Inherited) -> Self {
        let sole_parent = self.sole_parent && inherited.is_empty();
        Self { sole_parent, inherited: inherited.clone(), ..self }
    }

    /// The leader's pid, as it was launched.
    pub fn leader(&self) -> u32 {
        self.leader
    }

    /// Tells that the leader was reaped: from now on its pid may be anybody's.
    pub fn leader_reaped(&mut self) {
        self.leader_reaped_at = Some(procfs::now());
        self.known.remove(&self.leader);
    }

    /// Looks at every process once. Takes some 10 µs per process of the container.
    pub fn scan(&mut self) -> Scan {
        let Look { processes, members, unreadable } = match self.look() {
            Ok(look) => look,
            Err(blind) => {
                let unseen = (reaper::children() != Children::None).then_some(blind);
                return Scan { unseen, ..Scan::default() };
            }
        };
        let mut scan = Scan::default();
        for process in processes.iter().filter(|process| process.alive) {
            if members.contains(&process.pid) {
                self.uids.extend(procfs::effective_uid(process.pid));
                let member = self.describe(process);
                match member {
                    leader if self.is_leader(leader.pid) => scan.leader = Some(leader),
                    server if server.server_jvm => scan.server.push(server),
                    other => scan.stragglers.push(other),
                }
            } else if process.parent == own_pid() {
                scan.strangers.push(member(process, read_command(process)));
            }
        }
        // A closed entry may be anybody's; without one, a child that shows accounts for the answer.
        let doubtful = scan.is_empty() && (scan.strangers.is_empty() || !unreadable.is_empty());
        if doubtful && reaper::children() == Children::Alive {
            scan.unseen = Some(HIDDEN.to_owned());
        }
        scan
    }

    /// Signals the leader alone, at once and without a look; `Gone` after it was reaped.
    pub fn signal_leader(&self, signal: i32) -> Delivery {
        match self.leader_reaped_at {
            None => delivery::send_to_child(self.leader, signal),
            Some(_) => Delivery::Gone,
        }
    }

    /// Signals a process that a scan found, if it is still the same one.
    pub fn signal(&self, member: &Member, signal: i32) -> Delivery {
        delivery::send(member.pid, member.started, signal)
    }

    /// Looks again and signals everything but leader and server JVMs. Returns how many got it.
    pub fn signal_stragglers(&mut self, signal: i32) -> usize {
        let stragglers = self.scan().stragglers;
        let sent =
            stragglers.iter().filter(|&member| self.signal(member, signal) == Delivery::Sent);
        sent.count()
    }

    /// Asks the server JVM for a thread dump on its stdout, or the leader where that is a JVM and
    /// the only one; never another process, which QUIT would end. Returns the pids asked.
    pub fn dump_threads(&mut self) -> Vec<u32> {
        let scan = self.scan();
        let leader = scan.leader.iter().filter(|leader| leader.jvm);
        let servers: Vec<&Member> = match scan.server.as_slice() {
            [] => leader.collect(),
            servers => servers.iter().collect(),
        };
        let asked =
            servers.into_iter().filter(|jvm| self.signal(jvm, libc::SIGQUIT) == Delivery::Sent);
        asked.map(|jvm| jvm.pid).collect()
    }

    /// Kills the whole tree, and looks again until nobody new is found: a tree that keeps forking
    /// must not escape. Returns how many processes got the KILL; each still has to be reaped, and
    /// one in an uninterruptible wait lives until that ends.
    pub fn kill_all(&mut self) -> usize {
        let mut killed = BTreeSet::new();
        for _ in 0..KILL_ROUNDS {
            let look = match self.look() {
                Ok(look) => look,
                Err(blind) => return self.kill_blindly(&blind),
            };
            let before = killed.len();
            for process in
                look.processes.iter().filter(|process| look.members.contains(&process.pid))
            {
                let identity = (process.pid, process.started);
                if process.alive && killed.insert(identity) {
                    delivery::send(process.pid, process.started, libc::SIGKILL);
                }
            }
            if killed.len() == before {
                return killed.len();
            }
        }
        tracing::error!(
            killed = killed.len(),
            "the engine's processes fork faster than they are killed"
        );
        killed.len()
    }

    /// Without `/proc` there are still the leader and its group, until it is reaped. Not longer: its
    /// number may be anybody's then. And never everybody: a person's shell is not ours to end.
    fn kill_blindly(&self, blind: &str) -> usize {
        tracing::error!("only the engine's process group is killed: {blind}");
        match self.leader_reaped_at {
            None => {
                let sent = delivery::send_to_group_of_child(self.leader, libc::SIGKILL);
                usize::from(sent == Delivery::Sent)
            }
            Some(_) => 0,
        }
    }

    fn is_leader(&self, pid: u32) -> bool {
        pid == self.leader && self.leader_reaped_at.is_none()
    }

    /// Looks at every process and remembers the members. Reads only what cannot hang, but for the
    /// environment of orphans that nothing else tells about.
    fn look(&mut self) -> Result<Look, String> {
        let (processes, unreadable) =
            procfs::processes().map_err(|error| procfs::unusable(&error))?;
        let known = self.known.iter().map(|(&pid, known)| (pid, known.started)).collect();
        let run = Run {
            own: own_pid(),
            leader: self.leader,
            leader_reaped_at: self.leader_reaped_at,
            sole_parent: self.sole_parent,
            inherited: &self.inherited,
            known: &known,
        };
        let members = run.members(&processes, |orphan| self.claims_to_belong(orphan));
        self.remember(&processes, &members);
        Ok(Look { processes, members, unreadable })
    }

    /// Whether an orphan carries the cookie, or hides its environment and has the engine's uid.
    fn claims_to_belong(&self, orphan: &Process) -> bool {
        // A zombie shows nothing, and who waits for a disk may keep its reader waiting as well.
        if !orphan.alive || orphan.uninterruptible {
            return false;
        }
        match procfs::carries(orphan.pid, &self.cookie) {
            Carries::Yes => true,
            Carries::No => false,
            Carries::Unreadable => {
                procfs::effective_uid(orphan.pid).is_some_and(|uid| self.uids.contains(&uid))
            }
        }
    }

    fn remember(&mut self, processes: &[Process], members: &BTreeSet<u32>) {
        let mut before = std::mem::take(&mut self.known);
        for process in processes.iter().filter(|process| members.contains(&process.pid)) {
            let started = process.started;
            let same = before.remove(&process.pid).filter(|known| known.started == started);
            let known = same.unwrap_or(Known { started, server_jvm: None });
            self.known.insert(process.pid, known);
        }
    }

    fn describe(&mut self, process: &Process) -> Member {
        let known = self.known.get_mut(&process.pid);
        let remembered = known.as_ref().and_then(|known| known.server_jvm.as_ref());
        if let Some((name, command)) = remembered
            && *name == process.name
        {
            return member(process, command.clone());
        }
        let command = read_command(process);
        if let Some(known) = known {
            known.server_jvm = command.server_jvm.then(|| (process.name.clone(), command.clone()));
        }
        member(process, command)
    }
}

fn read_command(process: &Process) -> CommandLine {
    // Reading the arguments of a process that waits for a disk may wait as well.
    let arguments =
        if process.uninterruptible { Vec::new() } else { procfs::command_line(process.pid) };
    CommandLine::parse(&arguments, &process.name)
}

fn member(process: &Process, command: CommandLine) -> Member {
    let CommandLine { shown, jvm, server_jvm } = command;
    Member {
        pid: process.pid,
        command: shown,
        jvm,
        server_jvm,
        uninterruptible: process.uninterruptible,
        started: process.started,
    }
}
