//! The first half: config everywhere, allocation and flush once, every stop, the checksums frozen.

use super::WHOLE_CLUSTER;
use super::supersede::may_be_stopped_again;
use crate::flow::Move;
use crate::flow::member::{is_overtaken, overtaken};
use crate::flow::start::told;
use crate::lookup::Names;
use crate::planner::Planner;
use crate::rules::preflight;
use crate::{Action, Code, Member, Restart, Step};
use stayput_api::{Desired, State};

impl Planner<'_> {
    /// Config everywhere, allocation and flush once, then every stop; then the checksums are frozen.
    pub(super) fn stop_all(&mut self, restart: &Restart) {
        let mut ready = true;
        let mut stopped = true;
        for (index, member) in Self::active(restart) {
            match self.stop_side(restart, member) {
                Ok(is_stopped) => stopped &= is_stopped,
                Err(turn) => {
                    ready = false;
                    stopped = false;
                    if let Move::Abort(reason) = turn {
                        self.turn_back(restart, &format!("{}: {reason}", member.node));
                        return;
                    }
                    self.apply(index, member, turn);
                }
            }
        }
        if !ready || self.has_changed() {
            return;
        }
        if stopped {
            self.freeze(restart);
        } else {
            self.stop_everybody(restart);
        }
    }

    /// Whether a member is stopped; `Err` while it could not be.
    pub(super) fn stop_side(&mut self, restart: &Restart, member: &Member) -> Result<bool, Move> {
        let Some(pod) = self.view.pod(&member.pod_uid) else {
            return Err(self.succeeded(member));
        };
        let late = |told: String| Move::Abort(format!("not stopped in time: {told}"));
        // With nodes down that only the new config can bring back there is no way but on.
        let forward = !self.may_turn_back();
        let over = !forward && self.is_over_time(member, 1);
        let manager = match self.view.manager(&member.pod_uid) {
            Ok(manager) => manager,
            Err(refusal) if over => return Err(late(refusal.message)),
            Err(refusal) => return Err(Move::Wait(refusal)),
        };
        // An engine that somebody has started meanwhile is stopped like the others.
        let started =
            manager.sequence < member.stop_sequence && manager.desired == Desired::Running;
        if is_overtaken(manager, member) && !(forward && started) {
            return Err(overtaken(manager, member));
        }
        if manager.sequence >= member.stop_sequence {
            let is_stopped = manager.state == State::Stopped;
            if !is_stopped && over {
                return Err(late(told(manager)));
            }
            if !is_stopped {
                self.wait(&member.pod_uid, Code::Stopping, told(manager));
            }
            return Ok(is_stopped);
        }
        if let Some(ending) = restart.ending.as_ref().filter(|_| !forward) {
            return Err(Move::Abort(ending.reason.clone()));
        }
        if over {
            return Err(late("the new config was not mounted everywhere".into()));
        }
        self.not_paused().map_err(Move::Wait)?;
        if forward {
            may_be_stopped_again(pod, manager).map_err(Move::Wait)?;
            if let Some(changed) = self.know_process(member) {
                return Err(changed);
            }
        } else {
            preflight(pod).map_err(Move::Wait)?;
        }
        match self.until_mounted(member, pod, manager, false) {
            Some(turn) => Err(turn),
            None => Ok(false),
        }
    }

    /// Writes down the process that must be gone, where the engine could not be asked before.
    fn know_process(&self, member: &Member) -> Option<Move> {
        let node = self.view.node(&member.node).filter(|_| member.ephemeral_id.is_none())?;
        let mut known = member.clone();
        known.ephemeral_id = Some(node.ephemeral_id.clone());
        Some(Move::Change(Box::new(known)))
    }

    /// Allocation and flush, once and for all; then everybody is told to stop.
    pub(super) fn stop_everybody(&mut self, restart: &Restart) {
        if !restart.once.flush {
            let held = self.ledger.debts.allocation.iter().flat_map(|debt| &debt.holders);
            let held: Names<'_> = held.map(String::as_str).collect();
            // What is to be done is the same for everybody it is held for.
            let holder = Self::active(restart).find(|(_, one)| held.contains(&*one.pod_uid));
            let prepared = holder.and_then(|(_, member)| self.tighten(member));
            if let Some(Move::Wait(refusal)) = prepared
                // Taken over tight, it is not waited for where nobody is left to be asked.
                && !(restart.once.allocation && refusal.code == Code::EngineUnreachable)
            {
                self.wait_all(refusal.code, refusal.message);
                return;
            }
            if !self.snapshot.flushed.contains(WHOLE_CLUSTER) && self.view.engine().is_ok() {
                self.act(Action::Flush { node: WHOLE_CLUSTER.into() });
                self.wait_all(Code::Preparing, "flushing");
                return;
            }
            if let Some(restart) = &mut self.ledger.to_mut().restart {
                restart.once.allocation = true;
                restart.once.flush = true;
            }
            return;
        }
        for (_, member) in Self::active(restart) {
            let Ok(manager) = self.view.manager(&member.pod_uid) else { continue };
            if manager.sequence < member.stop_sequence {
                self.act(Action::Stop {
                    uid: member.pod_uid.clone(),
                    sequence: member.stop_sequence,
                    drain: self.policy.drain,
                });
            }
        }
    }

    /// Everybody is stopped: what each will start with is fixed, in one write.
    pub(super) fn freeze(&mut self, restart: &Restart) {
        for (index, member) in Self::active(restart) {
            let (Some(pod), Ok(manager)) =
                (self.view.pod(&member.pod_uid), self.view.manager(&member.pod_uid))
            else {
                return;
            };
            if let Some(turn) = self.until_mounted(member, pod, manager, true) {
                if self.is_over_time(member, 2) && self.may_turn_back() {
                    self.turn_back(restart, "the new config was not mounted everywhere in time");
                    return;
                }
                self.apply(index, member, turn);
            }
        }
        let mounted = Self::active(restart).all(|(_, member)| {
            self.view.manager(&member.pod_uid).is_ok_and(|one| one.mounted == member.expected)
        });
        if !self.has_changed()
            && mounted
            && let Some(restart) = &mut self.ledger.to_mut().restart
        {
            restart.frozen = Some(self.snapshot.now);
            let members = restart.members.iter_mut();
            for member in members.filter(|member| member.step != Step::Finished) {
                member.since = self.snapshot.now;
            }
        }
    }
}
