//! The end of a restart, and of the SearchCluster itself.

use crate::planner::Planner;
use crate::{Action, Ending, HistoryEntry, Outcome, Reason, Restart, Step, annotation};

impl Planner<'_> {
    /// Ends the restart once nobody is under way and nobody is left to go.
    pub(super) fn finish_restart(&mut self) {
        let Some(restart) = &self.ledger.restart else { return };
        let waits = restart.members.iter().any(|member| member.step == Step::Scheduled);
        if let Some(deadline) = restart.request.deadline
            && waits
            && self.snapshot.now.since(restart.started) >= deadline.0
        {
            self.end_with(Outcome::Aborted, "the request's deadline has passed");
        }
        let Some(restart) = &self.ledger.restart else { return };
        if restart.members.iter().any(crate::Member::is_under_way)
            || (waits && restart.ending.is_none())
        {
            return;
        }
        let Some(restart) = self.restart() else { return };
        let ending = restart.ending.clone().unwrap_or_else(|| of_members(&restart));
        let untold = restart.members.iter().any(|member| {
            let pod = self.view.pod(&member.pod_uid);
            let shows = pod.is_some_and(|pod| pod.annotations.contains_key(annotation::SHOWN));
            member.step == Step::Finished && member.stop_sequence > 0 && shows
        });
        if untold {
            // How each node's turn ended is shown on its pod before the restart's end is all that
            // is known.
            return;
        }
        let done = |member: &&crate::Member| {
            member.ending.as_ref().is_some_and(|ending| ending.outcome == Outcome::Done)
        };
        let nodes = restart.members.iter().filter(done).count();
        self.close(&restart, ending, nodes);
        self.ledger.to_mut().restart = None;
    }

    /// Tells how a restart ended, and remembers it.
    pub(super) fn close(&mut self, restart: &Restart, ending: Ending, nodes: usize) {
        let seconds = self.snapshot.now.since(restart.started) / 1000;
        let id = &restart.request.id;
        let (reason, message) = match ending.outcome {
            Outcome::Done => (
                Reason::RestartFinished,
                format!("Restart {id} is done: {nodes} nodes in {seconds} s"),
            ),
            Outcome::Aborted | Outcome::RolledBack | Outcome::Interfered | Outcome::Superseded => (
                Reason::RestartAborted,
                format!("Restart {id}: {} ({})", ending.outcome.as_str(), ending.reason),
            ),
        };
        self.tell(None, reason, message);
        self.ledger.to_mut().record(HistoryEntry {
            id: id.clone(),
            strategy: restart.request.strategy,
            outcome: ending.outcome,
            reason: ending.reason,
            started: restart.started,
            seconds,
            nodes: u32::try_from(nodes).unwrap_or(u32::MAX),
        });
    }

    /// Lets a SearchCluster go that is being deleted, once nothing is owed, nothing of ours is left on
    /// its pods, and every node no longer to be kept stopped is told to run. Those that are to be
    /// stay stopped.
    pub(super) fn let_go(&mut self) {
        let cluster = &self.snapshot.cluster;
        if !cluster.deleting || !cluster.finalizer || self.has_changed() {
            return;
        }
        let ours = |pod: &&crate::Pod| pod.annotations.contains_key(annotation::SHOWN);
        let settled = self.ledger.restart.is_none()
            && self.ledger.debts.is_empty()
            && !self.ledger.kept_stopped.iter().any(|fence| fence.releasing);
        if settled && !self.view.pods().any(|pod| ours(&pod)) {
            self.act(Action::RemoveFinalizer);
        }
    }
}

/// How a restart ends that nobody has ended: done if all of its nodes are.
fn of_members(restart: &Restart) -> Ending {
    let left = restart.members.iter().find_map(|member| {
        let ending = member.ending.as_ref()?;
        (ending.outcome != Outcome::Done).then(|| Ending {
            outcome: ending.outcome,
            reason: format!("{}: {}", member.node, ending.reason),
        })
    });
    left.unwrap_or(Ending::done())
}
