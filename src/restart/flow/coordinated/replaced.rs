//! A pod replaced in the middle of a coordinated restart is a new member.

use crate::flow::member::GAP;
use crate::flow::start::told;
use crate::flow::{Move, wait};
use crate::planner::Planner;
use crate::rules::preflight;
use crate::{Action, Code, Manager, Member};
use stayput_api::State;

impl Planner<'_> {
    /// A member whose pod is not listed. The pod in its place is a new member with sequences of its
    /// own; a list that lacks it for a moment is waited for.
    pub(in crate::flow) fn succeeded(&mut self, member: &Member) -> Move {
        let Some(successor) = self.view.successor(member) else {
            // A list may lack a pod whose engine runs on: after the point of no return it would be
            // left behind on another config.
            if self.is_over_time(member, 2) && self.may_turn_back() {
                return Move::Abort("its pod is gone and no other took its place".into());
            }
            return wait(Code::PodGone, "the pod is gone; waiting for the one in its place");
        };
        let manager = match self.view.manager(&successor.uid) {
            Ok(manager) => manager,
            Err(refusal) if self.is_over_time(member, 2) && self.may_turn_back() => {
                return Move::Abort(format!("its pod was replaced: {}", refusal.message));
            }
            Err(refusal) => return Move::Wait(refusal),
        };
        if let Some(debt) = &mut self.ledger.to_mut().debts.allocation {
            for holder in &mut debt.holders {
                if *holder == member.pod_uid {
                    holder.clone_from(&successor.uid);
                }
            }
        }
        if let Some(debt) = &mut self.ledger.to_mut().debts.exclusion
            && debt.pod_uid == member.pod_uid
        {
            debt.pod_uid.clone_from(&successor.uid);
        }
        let mut new = member.clone();
        new.pod_uid.clone_from(&successor.uid);
        new.stop_sequence = manager.sequence + GAP;
        new.start_sequence = new.stop_sequence + GAP;
        Move::Change(Box::new(new))
    }

    /// A pod that took a member's place after the others were stopped has an engine that runs.
    pub(super) fn stop_new_pod(&mut self, member: &Member, manager: &Manager) -> Option<Move> {
        if manager.sequence >= member.stop_sequence {
            // One that has ended by itself can be started as it is.
            let is_down = matches!(manager.state, State::Stopped | State::Failed | State::Backoff);
            return (!is_down).then(|| wait(Code::Stopping, told(manager)));
        }
        let fit = || self.view.pod(&member.pod_uid).map_or(Ok(()), |pod| preflight(pod).map(drop));
        if let Err(refusal) = self.not_paused().and_then(|()| fit()) {
            return Some(Move::Wait(refusal));
        }
        let uid = member.pod_uid.clone();
        self.act(Action::Stop { uid, sequence: member.stop_sequence, drain: 0 });
        Some(Move::Acted)
    }
}
