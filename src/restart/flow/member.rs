//! One node's way through a rolling or immediate restart.

use super::{Move, wait};
use crate::planner::Planner;
use crate::{Code, Ending, Manager, Member, Outcome, Reason, RecordDebt, Restart, Sources, Step};
use stayput_api::{Desired, RequestKind};

/// Our sequences leave one free before each of them: who calls a manager without a sequence takes
/// the next one, and is not taken for us.
pub(super) const GAP: u64 = 2;

impl Planner<'_> {
    /// Lets every member that holds a slot take its next step.
    pub(super) fn advance_members(&mut self) {
        let Some(restart) = self.restart() else { return };
        for (index, member) in restart.members.iter().enumerate() {
            let turn = match member.step {
                Step::Finished => continue,
                Step::Scheduled => match self.still_there(member) {
                    Some(turn) => turn,
                    None => continue,
                },
                Step::Restarting => self.restart_member(&restart, member),
                Step::Aborting => self.bring_back(member),
            };
            self.apply(index, member, turn);
        }
    }

    /// `None` while the pod of a member that waits for its turn is listed. Another one in its place
    /// takes the turn over.
    pub(super) fn still_there(&mut self, member: &Member) -> Option<Move> {
        if self.view.pod(&member.pod_uid).is_some() {
            return None;
        }
        if let Some(successor) = self.view.successor(member) {
            let mut new = member.clone();
            new.pod_uid.clone_from(&successor.uid);
            return Some(Move::Change(Box::new(new)));
        }
        Some(if self.is_over_time(member, 1) {
            Self::untouched("its pod is gone and no other took its place")
        } else {
            self.again_within(crate::planner::LATER);
            wait(Code::PodGone, "the pod is gone; waiting for the one in its place")
        })
    }

    /// Writes down what a member's turn came to.
    pub(super) fn apply(&mut self, index: usize, member: &Member, turn: Move) {
        match turn {
            Move::Wait(refusal) => self.refused(&member.pod_uid, refusal),
            Move::Acted => {}
            Move::Change(changed) => self.set_member(index, *changed),
            Move::Abort(reason) => self.abort(index, member, &reason),
            Move::Finish(ending) => self.finish_member(index, member, ending),
        }
    }

    pub(super) fn set_member(&mut self, index: usize, member: Member) {
        if let Some(restart) = &mut self.ledger.to_mut().restart
            && let Some(entry) = restart.members.get_mut(index)
        {
            *entry = member;
        }
    }

    /// The next step of a member that may be stopped and started.
    fn restart_member(&mut self, restart: &Restart, member: &Member) -> Move {
        let Some(pod) = self.view.pod(&member.pod_uid) else {
            return self.replaced(member);
        };
        let manager = match self.view.manager(&member.pod_uid) {
            Ok(manager) => manager,
            Err(refusal) if self.is_over_time(member, 2) => {
                return Move::Abort(format!("no answer in time: {}", refusal.message));
            }
            Err(refusal) => return Move::Wait(refusal),
        };
        if is_overtaken(manager, member) {
            return overtaken(manager, member);
        }
        if manager.sequence > member.start_sequence {
            // Refused, but it has moved the fence beyond our start.
            let mut above = member.clone();
            above.start_sequence = start_above(member, manager.sequence);
            return Move::Change(Box::new(above));
        }
        if manager.sequence == member.start_sequence {
            return self.prove(member, pod, manager);
        }
        if manager.sequence >= member.stop_sequence {
            return self.start_again(member, pod, manager);
        }
        self.stop_first(restart, member, pod, manager)
    }

    /// Whether so many phases' time has passed since the member took its slot. A phase that ends
    /// early leaves its time to the next, so that only the slot's moment must be remembered.
    pub(super) fn is_over_time(&self, member: &Member, phases: u64) -> bool {
        self.snapshot.now.since(member.since) >= phases.saturating_mul(self.policy.phase_timeout)
    }

    /// A member whose pod was replaced: the new pod has a new process on what is mounted there.
    fn replaced(&mut self, member: &Member) -> Move {
        let Some(successor) = self.view.successor(member) else {
            if self.is_over_time(member, 2) {
                return Move::Abort("the pod is gone and no other took its place".into());
            }
            return wait(Code::PodGone, "the pod is gone; waiting for the one in its place");
        };
        let joined = self.lists_new_process(member);
        let runs = self.view.manager(&successor.uid).ok().and_then(|manager| manager.run.as_ref());
        let other = match (&successor.sources, runs) {
            (Sources::Checksum(wanted), Some(run)) => run.checksum.as_ref() != Some(wanted),
            (Sources::Undeclared | Sources::Absent(_), _) | (Sources::Checksum(_), None) => false,
        };
        if joined && self.view.is_up(successor) && other {
            // The kubelet mounted what it still had: the new pod's turn is to come.
            return self.succeeded(member);
        }
        if joined && self.view.is_up(successor) {
            return match self.clean_up(member) {
                Some(turn) => turn,
                None => Move::Finish(Ending {
                    outcome: Outcome::Done,
                    reason: "the pod was replaced in the middle; the new one runs".into(),
                }),
            };
        }
        if self.is_over_time(member, 2) {
            return Move::Abort("the pod was replaced and the new one has not joined".into());
        }
        wait(Code::Joining, "the pod was replaced; waiting for the new one to join")
    }

    /// Ends a member's part, and settles what was held for it.
    pub(super) fn finish_member(&mut self, index: usize, member: &Member, ending: Ending) {
        let uid = &member.pod_uid;
        if let Some(debt) = &mut self.ledger.to_mut().debts.allocation {
            debt.holders.retain(|holder| holder != uid);
            // Set back already, or never set: nothing is owed.
            let ours = |id: &str| debt.restart == id;
            let marked = self.view.allocation().map(|allocation| {
                allocation.marker.as_ref().is_some_and(|marker| ours(&marker.restart))
            });
            if debt.holders.is_empty() && marked == Ok(false) {
                self.ledger.to_mut().debts.allocation = None;
            }
        }
        if let Ok(records) = self.records() {
            let is_there = |debt: &RecordDebt| records.iter().any(|record| debt.is_about(record));
            let debts = &mut self.ledger.to_mut().debts.records;
            debts.retain(|debt| debt.pod_uid != *uid || is_there(debt));
        }
        self.settle_exclusion(uid);
        let (reason, message) = match ending.outcome {
            Outcome::Done => (Reason::NodeRestarted, format!("{} is back", member.node)),
            Outcome::Aborted | Outcome::RolledBack | Outcome::Interfered | Outcome::Superseded => (
                Reason::NodeRestartAborted,
                format!("{} is no longer waited for: {}", member.node, ending.outcome.as_str()),
            ),
        };
        self.tell(Some(uid), reason, message);
        if ending.outcome != Outcome::Done {
            self.end_with(ending.outcome, format!("{}: {}", member.node, ending.reason));
        }
        let mut finished = member.clone();
        finished.step = Step::Finished;
        finished.compensation = None;
        finished.ending = Some(ending);
        self.set_member(index, finished);
    }
}

/// Whether somebody else gave the manager orders since the member took its slot: with a higher
/// sequence, with one from the gaps between ours ([`GAP`]), or with one of ours for the opposite.
pub(super) fn is_overtaken(manager: &Manager, member: &Member) -> bool {
    if is_refused(manager) {
        return false;
    }
    let between =
        manager.sequence > member.stop_sequence && manager.sequence < member.start_sequence;
    manager.sequence > member.start_sequence
        || manager.sequence + 1 == member.stop_sequence
        || (between && (manager.sequence - member.stop_sequence) % 2 == 1)
        || is_opposite(manager, member.stop_sequence, RequestKind::Stop)
        || is_opposite(manager, member.start_sequence, RequestKind::Start)
}

/// A start above these sequences that is told from other people's by [`is_overtaken`].
pub(super) fn start_above(member: &Member, sequence: u64) -> u64 {
    let above = sequence.max(member.start_sequence) + GAP;
    above + (above - member.stop_sequence) % 2
}

/// Whether the last request judged came to nothing; whoever sent it has changed nothing.
pub(super) fn is_refused(manager: &Manager) -> bool {
    let last = manager.last_request.as_ref();
    last.is_some_and(|last| last.sequence == manager.sequence && !last.accepted)
}

/// Whether the last request judged has our sequence, and is not what we sent with it.
pub(super) fn is_opposite(manager: &Manager, sequence: u64, ours: RequestKind) -> bool {
    manager.last_request.as_ref().is_some_and(|last| last.sequence == sequence && last.kind != ours)
}

/// Somebody else was faster. As long as our stop may still be on its way to an engine that they
/// want to run, a start above it has to make an end of that.
pub(super) fn overtaken(manager: &Manager, member: &Member) -> Move {
    if manager.sequence < member.stop_sequence && manager.desired == Desired::Running {
        let by = manager.last_request.as_ref().map_or("somebody", |last| last.by.as_str());
        return Move::Abort(format!("{by} gave its manager a request in the middle"));
    }
    interfered(manager, member)
}

/// Somebody else gave the manager orders: theirs stand.
pub(super) fn interfered(manager: &Manager, member: &Member) -> Move {
    let by = manager.last_request.as_ref().map_or("somebody", |last| last.by.as_str());
    Move::Finish(Ending {
        outcome: Outcome::Interfered,
        reason: format!(
            "{by} gave the manager of {} a request with sequence {} in the middle; the engine is \
             asked to be {}",
            member.node,
            manager.sequence,
            manager.desired.as_str()
        ),
    })
}

/// Whether the answer to `sequence` was a refusal.
pub(super) fn was_refused(manager: &Manager, sequence: u64) -> bool {
    manager.last_request.as_ref().is_some_and(|last| last.sequence == sequence && !last.accepted)
}
