//! The `stop` phase of one node: config first, then the engine's preparation, then the rules once
//! more, then the stop.

use super::{Move, wait};
use crate::restart::planner::Planner;
use crate::restart::{Action, Code, Ending, Manager, Member, Outcome, Pod, Restart};

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
            let why = self.why_not_stopped(pod, manager);
            return Move::Abort(format!("not stopped in time: {why}"));
        }
        if self.snapshot.cluster.paused {
            return wait(Code::Paused, "paused (spec.paused): nothing is stopped");
        }
        if let Err(refusal) = self.preflight(pod) {
            return Move::Wait(refusal);
        }
        if let Some(turn) = self.until_mounted(member, pod, manager, false) {
            return turn;
        }
        if let Some(turn) = self.prepare_engine(restart, member) {
            return turn;
        }
        if !self.snapshot.flushed.contains(&member.node) && self.view.engine().is_ok() {
            self.act(Action::Flush { node: member.node.clone() });
            return Move::Wait(crate::restart::Refusal {
                code: Code::Preparing,
                sentence: "flushing".into(),
            });
        }
        if let Err(refusal) = self.may_stop(pod) {
            return Move::Wait(refusal);
        }
        self.act(Action::Stop {
            uid: pod.uid.clone(),
            sequence: member.stop,
            drain: self.policy.drain,
        });
        Move::Acted
    }

    /// What the stop waited for, for the reason of the abort.
    fn why_not_stopped(&self, pod: &Pod, manager: &Manager) -> String {
        if let Err(refusal) = self.preflight(pod) {
            return refusal.sentence;
        }
        match Self::expected_now(pod, manager) {
            Err(refusal) => return refusal.sentence,
            Ok(expected) if expected != manager.mounted => {
                return "the new config was not mounted".into();
            }
            Ok(_) => {}
        }
        match self.may_stop(pod) {
            Err(refusal) => refusal.sentence,
            Ok(()) => "the engine was not prepared, or the stop was not answered".into(),
        }
    }

    /// Ends a member that nothing was done to.
    pub(super) fn untouched(reason: &str) -> Move {
        Move::Finish(Ending { outcome: Outcome::Aborted, reason: reason.to_owned() })
    }
}
