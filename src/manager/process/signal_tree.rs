//! Signals to the processes of a run: one, some, or KILL to all of them.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use nix::errno::Errno;

use super::own_pid;
use super::procfs::{self, Carries, ProcUnusable, Process};
use super::scan::Member;
use super::tree::{RUN_VARIABLE, Tree};

/// Most rounds of [`Tree::kill_all`]. Processes that end meanwhile stay listed until they are reaped: each makes the
/// next round longer, and a longer round misses more forks.
const KILL_ROUNDS: usize = 10;

impl Tree {
    /// Signals the leader alone, at once and without reading `/proc`; `Gone` after it was reaped.
    pub fn signal_leader(&self, signal: i32) -> Delivery {
        match self.unreaped_leader() {
            Some(leader) => send_to_child(leader, signal),
            None => Delivery::Gone,
        }
    }

    /// Signals a process that a scan found, if it is still the same one.
    pub fn signal(&self, member: &Member, signal: i32) -> Delivery {
        send(member.pid, member.started, signal)
    }

    /// Scans again and signals all processes except leader and server JVMs. Returns how many got
    /// it.
    pub fn signal_stragglers(&mut self, signal: i32) -> usize {
        let stragglers = self.scan().stragglers;
        let sent =
            stragglers.iter().filter(|&member| self.signal(member, signal) == Delivery::Sent);
        sent.count()
    }

    /// Asks the server JVM for a thread dump on its stdout, or the leader if that is the only JVM.
    /// Never another process, which QUIT would end. Returns the pids.
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

    /// Kills the whole tree, and reads `/proc` again, a few times, until nothing has forked meanwhile. A tree that
    /// forks all the time may need more: reap what has ended, [scan](Self::scan), and call this again until nothing is
    /// left. Returns how many processes got the KILL; each still has to be reaped, and one in an uninterruptible wait
    /// lives until that ends.
    pub fn kill_all(&mut self) -> usize {
        let mut rounds = KillRounds::default();
        for _ in 0..KILL_ROUNDS {
            let snapshot = match self.snapshot() {
                Ok(snapshot) => snapshot,
                Err(error) => return self.kill_group(&error),
            };
            let found = rounds.whom_to_kill(snapshot.members(), snapshot.ended_children());
            let Some(found) = found else { break };
            for (pid, started) in found {
                send(pid, started, libc::SIGKILL);
            }
        }
        rounds.killed()
    }

    /// Kills the leader and its process group, which alone are known without `/proc`, until the
    /// leader is reaped: after that its number may belong to another process. Other processes of
    /// the container, such as a user's shell, are never killed.
    fn kill_group(&self, error: &ProcUnusable) -> usize {
        tracing::error!(%error, "only the engine's process group is killed");
        match self.unreaped_leader() {
            Some(leader) => {
                let sent = send_to_group_of_child(leader, libc::SIGKILL);
                usize::from(sent == Delivery::Sent)
            }
            None => 0,
        }
    }
}

/// The result of sending a signal. Failures are logged where they happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The signal was sent to the process.
    Sent,
    /// There is no such process any more.
    Gone,
    /// The manager may not signal the process: it has another uid, and CAP_KILL is missing.
    Denied,
}

/// Signals the process of this pid that started at `started`.
pub(super) fn send(pid: u32, started: u64, signal: i32) -> Delivery {
    let Some(target) = valid_target(pid) else { return Delivery::Gone };
    let handle = pidfd_open(target);
    if matches!(handle, Err(Errno::ESRCH)) {
        return Delivery::Gone;
    }
    // Checked after the handle was taken: if the pid is still the right process, so is the handle.
    match procfs::process(pid) {
        Ok(Some(process)) if process.started == started => {}
        Ok(_) | Err(_) => return Delivery::Gone,
    }
    let sent = match handle.and_then(|handle| pidfd_send_signal(handle.as_raw_fd(), signal)) {
        // The call does not exist (gVisor, Linux before 5.3), or a filter forbids it with one of
        // these errors; `kill` then reports the true error.
        Err(Errno::ENOSYS | Errno::EPERM | Errno::EINVAL) => kill(target, signal),
        other => other,
    };
    report(sent, pid, signal)
}

/// Signals a child that has not been reaped: no other process can have its pid.
pub(super) fn send_to_child(pid: u32, signal: i32) -> Delivery {
    match valid_target(pid) {
        Some(target) => report(kill(target, signal), pid, signal),
        None => Delivery::Gone,
    }
}

/// Signals the group of a child that has not been reaped: no other group can have its number.
pub(super) fn send_to_group_of_child(pid: u32, signal: i32) -> Delivery {
    match valid_target(pid) {
        Some(target) => report(kill(-target, signal), pid, signal),
        None => Delivery::Gone,
    }
}

/// The pid as the system call takes it. 0 and negative numbers would mean groups, 1 and the
/// manager's own pid would end the pod: no bug elsewhere may lead to one of them.
fn valid_target(pid: u32) -> Option<libc::pid_t> {
    libc::pid_t::try_from(pid).ok().filter(|&target| target > 1 && pid != own_pid())
}

fn report(sent: Result<(), Errno>, pid: u32, signal: i32) -> Delivery {
    match sent {
        Ok(()) => Delivery::Sent,
        Err(Errno::ESRCH) => {
            tracing::debug!(pid, signal, "process was gone before the signal");
            Delivery::Gone
        }
        Err(error) => {
            tracing::warn!(
                pid,
                signal,
                error = error.desc(),
                "cannot signal the process: if the engine has another uid, the manager needs CAP_KILL"
            );
            Delivery::Denied
        }
    }
}

fn kill(target: libc::pid_t, signal: i32) -> Result<(), Errno> {
    // SAFETY: takes integers; `target` was checked above.
    Errno::result(unsafe { libc::kill(target, signal) }).map(drop)
}

fn pidfd_open(target: libc::pid_t) -> Result<OwnedFd, Errno> {
    // SAFETY: takes integers.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, target, 0) };
    let raw = Errno::result(raw).and_then(|raw| RawFd::try_from(raw).map_err(|_| Errno::EBADF))?;
    // SAFETY: a new descriptor from the kernel, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

fn pidfd_send_signal(handle: RawFd, signal: i32) -> Result<(), Errno> {
    let no_info = ptr::null::<libc::siginfo_t>();
    // SAFETY: an open descriptor, integers, and a null that the call allows.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, handle, signal, no_info, 0) };
    Errno::result(sent).map(drop)
}

/// Findings of the rounds so far. Each round kills all processes that it finds, and a process that is being
/// killed cannot fork. So only processes that were forked while the list was read are missed.
#[derive(Debug, Default)]
pub(super) struct KillRounds {
    /// Pids and start times of processes that were to be killed.
    killed: BTreeSet<(u32, u64)>,
    /// Pids and start times of children of the manager that had ended.
    ended: BTreeSet<(u32, u64)>,
}

impl KillRounds {
    /// Number of processes that were to be killed.
    pub(super) fn killed(&self) -> usize {
        self.killed.len()
    }

    /// Pids and start times of all processes to kill now, from the run's processes and the manager's children
    /// that have ended and are not reaped. `None` if no process can have escaped.
    ///
    /// A child that has ended by itself since the last round asks for another one: it may have forked after the pids
    /// were listed, and have ended before it was read.
    pub(super) fn whom_to_kill<'a>(
        &mut self,
        members: impl Iterator<Item = &'a Process>,
        ended: impl Iterator<Item = &'a Process>,
    ) -> Option<Vec<(u32, u64)>> {
        let identity = |process: &Process| (process.pid, process.started);
        let alive = members.filter(|process| process.alive).map(identity);
        let found: Vec<_> = alive.filter(|&process| self.killed.insert(process)).collect();
        let mut by_itself = false;
        for process in ended {
            let is_new = self.ended.insert(identity(process));
            by_itself |= is_new && !self.killed.contains(&identity(process));
        }
        (by_itself || !found.is_empty()).then_some(found)
    }
}

// Processes of an earlier run whose manager was killed and was not PID 1. As PID 1 its end is the end of
// all; here the kernel ends only the leader, and whatever has left the leader's session lives on.

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
        send(process.pid, process.started, libc::SIGKILL);
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

    #[test]
    fn no_mistake_reaches_init_a_group_or_ourselves() {
        for pid in [0, 1, u32::MAX, 1 << 31, own_pid()] {
            assert_eq!(valid_target(pid), None, "{pid}");
            assert_eq!(send(pid, 0, libc::SIGKILL), Delivery::Gone);
            assert_eq!(send_to_child(pid, libc::SIGKILL), Delivery::Gone);
            assert_eq!(send_to_group_of_child(pid, libc::SIGKILL), Delivery::Gone);
        }
    }

    #[test]
    fn a_recycled_pid_is_not_signalled() {
        let parent = nix::unistd::getppid().as_raw().cast_unsigned();
        let started = procfs::process(parent).unwrap().unwrap().started;
        // Signal 0 only asks whether it could be sent.
        assert_eq!(send(parent, started + 1, 0), Delivery::Gone);
    }

    fn process_of(pid: u32, alive: bool) -> Process {
        let (parent, session, started) = (1, pid, u64::from(pid));
        Process {
            pid,
            parent,
            session,
            started,
            alive,
            uninterruptible: false,
            name: String::new(),
        }
    }

    /// The pids that a round kills, if these live and these have ended.
    fn round(rounds: &mut KillRounds, alive: &[u32], ended: &[u32]) -> Option<Vec<u32>> {
        let list = |pids: &[u32], alive| -> Vec<Process> {
            pids.iter().map(|&pid| process_of(pid, alive)).collect()
        };
        let (alive, ended) = (list(alive, true), list(ended, false));
        let found = rounds.whom_to_kill(alive.iter(), ended.iter())?;
        Some(found.into_iter().map(|(pid, _)| pid).collect())
    }

    #[test]
    fn rounds_end_once_nothing_new_is_found() {
        let mut rounds = KillRounds::default();
        assert_eq!(round(&mut rounds, &[10, 11], &[]), Some(vec![10, 11]));
        assert_eq!(round(&mut rounds, &[11], &[10]), None, "the other waits for a disk");
        assert_eq!(rounds.killed(), 2);
    }

    #[test]
    fn nothing_to_kill_takes_one_round() {
        assert_eq!(round(&mut KillRounds::default(), &[], &[]), None);
    }

    #[test] // proves STOP-4
    fn a_process_that_has_forked_and_ended_while_it_was_read_is_followed() {
        let mut rounds = KillRounds::default();
        assert_eq!(round(&mut rounds, &[10], &[]), Some(vec![10]));
        // 10 had forked 20 before its KILL. When 20 was read, it had ended, and its child 21 was not listed yet.
        assert_eq!(round(&mut rounds, &[], &[10, 20]), Some(vec![]));
        assert_eq!(round(&mut rounds, &[21], &[10, 20]), Some(vec![21]));
        assert_eq!(round(&mut rounds, &[], &[10, 20, 21]), None);
    }

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
