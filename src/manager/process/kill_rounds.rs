//! Decides from several lists of processes whom to kill, and when none can have escaped.

use std::collections::BTreeSet;

use super::procfs::Process;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, alive: bool) -> Process {
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
            pids.iter().map(|&pid| process(pid, alive)).collect()
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
}
