//! Signals to the processes of a run: one, some, or KILL to all of them.

use super::delivery::{self, Delivery};
use super::kill_rounds::KillRounds;
use super::procfs::ProcUnusable;
use super::scan::Member;
use super::tree::Tree;

/// Most rounds of [`Tree::kill_all`]. Processes that end meanwhile stay listed until they are reaped: each makes the
/// next round longer, and a longer round misses more forks.
const KILL_ROUNDS: usize = 10;

impl Tree {
    /// Signals the leader alone, at once and without reading `/proc`; `Gone` after it was reaped.
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
                delivery::send(pid, started, libc::SIGKILL);
            }
        }
        rounds.killed()
    }

    /// Kills the leader and its process group, which alone are known without `/proc`, until the
    /// leader is reaped: after that its number may belong to another process. Other processes of
    /// the container, such as a user's shell, are never killed.
    fn kill_group(&self, error: &ProcUnusable) -> usize {
        tracing::error!(%error, "only the engine's process group is killed");
        match self.leader_reaped_at {
            None => {
                let sent = delivery::send_to_group_of_child(self.leader, libc::SIGKILL);
                usize::from(sent == Delivery::Sent)
            }
            Some(_) => 0,
        }
    }
}
