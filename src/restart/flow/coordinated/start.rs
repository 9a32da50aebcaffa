//! The second half: every start, masters first, and the proof of all.

use super::supersede::Obstacle;
use crate::flow::member::{interfered, is_overtaken, is_refused, start_above, was_refused};
use crate::flow::start::{failing, told};
use crate::flow::{Move, wait};
use crate::lookup::Names;
use crate::planner::Planner;
use crate::{Code, Direction, Ending, Member, Restart};
use stayput_api::State;

/// A start that failed after the restart went forward only is tried again no sooner than this.
const RETRY: u64 = 30_000;

impl Planner<'_> {
    /// Starts, masters first and never waiting for anybody to be ready; then the proof of all.
    pub(super) fn start_all(&mut self, restart: &Restart) {
        let is_told = |member: &Member| {
            let manager = self.view.manager(&member.pod_uid);
            manager.is_ok_and(|manager| manager.sequence >= member.start_sequence)
        };
        // Where there is no way back, a master that cannot be started keeps nobody else down.
        let masters_told = Self::active(restart)
            .filter(|(_, member)| member.master_eligible)
            .all(|(_, one)| is_told(one))
            || restart.direction == Direction::Forward
                && Self::active(restart).any(|(_, one)| is_told(one) || self.is_over_time(one, 1));
        let obstacle = self.why_not_superseded(restart);
        let mut everybody = true;
        for (index, member) in Self::active(restart) {
            let may = member.master_eligible || masters_told;
            match self.start_side(restart, member, may, obstacle.as_ref()) {
                None => {}
                Some(Move::Abort(reason)) if restart.direction == Direction::Open => {
                    self.turn_back(restart, &format!("{}: {reason}", member.node));
                    return;
                }
                Some(Move::Abort(reason)) => {
                    everybody = false;
                    self.try_again(index, member, &reason);
                }
                Some(turn) => {
                    everybody = false;
                    self.apply(index, member, turn);
                }
            }
        }
        self.go_forward(restart);
        if everybody && !self.has_changed() {
            self.complete(restart);
        }
    }

    /// `None` once the member is back, proven.
    pub(super) fn start_side(
        &mut self,
        restart: &Restart,
        member: &Member,
        may: bool,
        obstacle: Option<&Obstacle>,
    ) -> Option<Move> {
        if self.view.pod(&member.pod_uid).is_none() {
            return Some(self.succeeded(member));
        }
        let manager = match self.view.manager(&member.pod_uid) {
            Ok(manager) => manager,
            Err(refusal) if self.is_over_time(member, 1) => {
                return Some(Move::Abort(format!("no answer in time: {}", refusal.message)));
            }
            Err(refusal) => return Some(Move::Wait(refusal)),
        };
        if manager.sequence > member.start_sequence && is_refused(manager) {
            let mut above = member.clone();
            above.start_sequence = start_above(member, manager.sequence);
            return Some(Move::Change(Box::new(above)));
        }
        if is_overtaken(manager, member) {
            return Some(interfered(manager, member));
        }
        if self.is_stranded(restart, member) {
            return Some(Move::Wait(self.way_out(restart, member, obstacle)));
        }
        if manager.sequence < member.start_sequence {
            if self.is_over_time(member, 1) && restart.direction == Direction::Open {
                return Some(Move::Abort(format!("not started in time: {}", told(manager))));
            }
            if !may {
                return Some(wait(Code::Barrier, "nodes that can be elected are started first"));
            }
            if manager.mounted != member.expected {
                if let Some(pod) = self.view.pod(&member.pod_uid) {
                    self.nudge(pod, member.expected.as_deref());
                }
                let message = "what is mounted is not what every node is to start with";
                return Some(wait(Code::ConfigNotMounted, message));
            }
            if let Some(turn) = self.stop_new_pod(member, manager) {
                return Some(turn);
            }
            return Some(self.tell_to_start(member));
        }
        if was_refused(manager, member.start_sequence) {
            // Nothing was started; the same request is judged afresh.
            if self.is_over_time(member, 1) {
                return Some(Move::Abort(format!("its start is refused: {}", told(manager))));
            }
            return Some(self.tell_to_start(member));
        }
        if let Some(reason) = failing(manager, member) {
            return Some(Move::Abort(reason));
        }
        if self.is_over_time(member, 1) && restart.direction == Direction::Open {
            return Some(Move::Abort(format!("not back in time: {}", told(manager))));
        }
        match self.has_joined(member) {
            Ok(true) if manager.state == State::Running && manager.ready != Some(false) => None,
            Ok(true) => Some(wait(Code::NotReady, "it has joined and is not ready yet")),
            Ok(false) | Err(_) => {
                Some(wait(Code::Joining, "started; the cluster does not list it yet"))
            }
        }
    }

    /// The first member that joins decides the direction.
    pub(super) fn go_forward(&mut self, restart: &Restart) {
        if restart.direction != Direction::Open || self.has_changed() {
            return;
        }
        let joined = Self::active(restart).any(|(_, member)| {
            let told = self.view.manager(&member.pod_uid);
            told.is_ok_and(|manager| manager.sequence >= member.start_sequence)
                && matches!(self.has_joined(member), Ok(true))
        });
        if joined && let Some(restart) = &mut self.ledger.to_mut().restart {
            restart.direction = Direction::Forward;
        }
    }

    /// Forward only: a start that failed is tried again, with a sequence of its own.
    pub(super) fn try_again(&mut self, index: usize, member: &Member, reason: &str) {
        if self.snapshot.now.since(member.since) < RETRY {
            self.wait(
                &member.pod_uid,
                Code::Joining,
                format!("{reason}; others have joined, so it is tried again, never turned back"),
            );
            return;
        }
        let Ok(manager) = self.view.manager(&member.pod_uid) else {
            self.wait(&member.pod_uid, Code::ManagerUnreachable, reason.to_owned());
            return;
        };
        let mut again = member.clone();
        again.since = self.snapshot.now;
        again.start_sequence = start_above(member, manager.sequence);
        self.set_member(index, again);
    }

    /// Everybody is back: allocation as it was, then all are done in one write.
    pub(super) fn complete(&mut self, restart: &Restart) {
        if self.ledger.debts.allocation.is_some() {
            match self.view.allocation() {
                Err(refusal) => return self.wait_all(refusal.code, refusal.message),
                Ok(allocation) => {
                    if self.restore(allocation) {
                        let message = "allocation is being set back to what it was";
                        return self.wait_all(Code::RestoringAllocation, message);
                    }
                }
            }
        }
        if self.ledger.debts.allocation.is_some() {
            let active = Self::active(restart).map(|(_, member)| member.pod_uid.as_str());
            let active: Names<'_> = active.collect();
            if let Some(debt) = &mut self.ledger.to_mut().debts.allocation {
                debt.holders.retain(|holder| !active.contains(holder.as_str()));
            }
        }
        for (index, member) in Self::active(restart) {
            self.finish_member(index, member, Ending::done());
        }
    }
}
