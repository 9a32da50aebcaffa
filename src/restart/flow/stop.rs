//! The `stop` phase of one node: config first, then the engine's preparation, then the rules once
//! more, then the stop.

use super::{Move, wait};
use crate::planner::Planner;
use crate::{Action, Code, Ending, Manager, Member, Outcome, Pod, Restart};

impl Planner<'_> {
    /// What comes before and with `POST /es/stop`.
    pub(super) fn stop_first(
        &mut self,
        restart: &Restart,
        member: &Member,
        pod: &Pod,
        manager: &Manager,
    ) -> Move {
        if let Some(ending) = &restart.ending {
            // Nothing was done to this engine; the way back fences a stop that may still be out.
            return Move::Abort(ending.reason.clone());
        }
        if self.is_over_time(member, 1) {
            let why = self.why_not_stopped(restart, pod, manager);
            return Move::Abort(format!("not stopped in time: {why}"));
        }
        if let Err(refusal) = self.not_paused() {
            return Move::Wait(refusal);
        }
        if let Err(refusal) = self.preflight(pod) {
            return Move::Wait(refusal);
        }
        if let Some(turn) = self.until_mounted(member, pod, manager, false) {
            return turn;
        }
        if self.is_lost(pod) {
            if let Some(turn) = self.prepare_lost(restart, member) {
                return turn;
            }
        } else {
            if let Some(turn) = self.hand_over(member) {
                return turn;
            }
            if let Some(turn) = self.prepare_engine(restart, member) {
                return turn;
            }
            if !self.snapshot.flushed.contains(&member.node) && self.view.engine().is_ok() {
                self.act(Action::Flush { node: member.node.clone() });
                return wait(Code::Preparing, "flushing");
            }
            if let Err(refusal) = self.may_stop_together(restart, pod) {
                return Move::Wait(refusal);
            }
        }
        self.act(Action::Stop {
            uid: pod.uid.clone(),
            sequence: member.stop_sequence,
            drain: self.policy.drain,
        });
        Move::Acted
    }

    /// As [`Self::prepare_engine`], for an engine that is down with its whole set: there is nothing
    /// to flush, and if the cluster cannot be asked there is nothing to prepare.
    fn prepare_lost(&mut self, restart: &Restart, member: &Member) -> Option<Move> {
        match self.view.engine() {
            Ok(_) => self.prepare_engine(restart, member),
            Err(refusal) if refusal.code == Code::WrongCluster => Some(Move::Wait(refusal)),
            Err(_) => None,
        }
    }

    /// What the stop waited for, for the reason of the abort.
    fn why_not_stopped(&self, restart: &Restart, pod: &Pod, manager: &Manager) -> String {
        if let Err(refusal) = self.preflight(pod) {
            return refusal.message;
        }
        match Self::expected_now(pod, manager) {
            Err(refusal) => return refusal.message,
            Ok(expected) if expected != manager.mounted => {
                return "the new config was not mounted".into();
            }
            Ok(_) => {}
        }
        match self.may_stop_together(restart, pod) {
            Err(refusal) => refusal.message,
            Ok(()) => "the engine was not prepared, or the stop was not answered".into(),
        }
    }

    /// Ends a member that nothing was done to.
    pub(super) fn untouched(reason: &str) -> Move {
        Move::Finish(Ending { outcome: Outcome::Aborted, reason: reason.to_owned() })
    }
}
