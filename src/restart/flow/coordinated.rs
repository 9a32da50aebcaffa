//! All nodes stopped, then all started. One direction for everybody: until the first has joined it
//! can turn back; after that it goes forward only, so that the cluster is never left split.

use super::member::{interfered, is_overtaken, was_refused};
use super::start::{failing, told};
use super::{Move, wait};
use crate::api::{ConfigChoice, State};
use crate::restart::gates::preflight;
use crate::restart::planner::Planner;
use crate::restart::{
    Action, Code, Direction, Ending, Manager, Member, Outcome, Reason, Restart, Step,
};

/// The one flush a coordinated restart has.
pub(in crate::restart) const WHOLE_CLUSTER: &str = "*";
/// A start that failed after the restart went forward only is tried again no sooner than this.
const RETRY: u64 = 30_000;

impl Planner<'_> {
    /// The next step of a coordinated restart.
    pub(super) fn coordinate(&mut self) {
        let Some(restart) = self.ledger.restart.clone() else { return };
        let turning = restart.members.iter().any(|member| member.step == Step::Aborting);
        if turning {
            self.advance_members();
        } else if restart.members.iter().any(|member| member.step == Step::Scheduled) {
            self.begin_all(&restart);
        } else if restart.frozen.is_some() {
            self.start_all(&restart);
        } else {
            self.stop_all(&restart);
        }
    }

    /// Members that still take part.
    fn active(restart: &Restart) -> impl Iterator<Item = (usize, &Member)> {
        let members = restart.members.iter().enumerate();
        members.filter(|(_, member)| member.step != Step::Finished)
    }

    /// Gives every member its slot, all in one write: or nobody, if something is in the way of one.
    fn begin_all(&mut self, restart: &Restart) {
        if restart.ending.is_some() {
            return;
        }
        let blocked = self.may_begin(restart).err().or_else(|| {
            Self::active(restart).find_map(|(_, member)| {
                let pod = self.view.pod(&member.pod_uid)?;
                let refusal = preflight(pod).err()?;
                Some(crate::restart::Refusal {
                    sentence: format!("{}: {}", pod.node, refusal.sentence),
                    ..refusal
                })
            })
        });
        if let Some(refusal) = blocked {
            self.wait_all(refusal.code, refusal.sentence.clone());
            for (_, member) in Self::active(restart) {
                self.refused(&member.pod_uid, refusal.clone());
            }
            return;
        }
        if !self.has_finalizer() {
            return;
        }
        for (index, member) in Self::active(restart) {
            let Some(pod) = self.view.pod(&member.pod_uid) else {
                self.apply(index, member, Self::untouched("the pod is gone"));
                continue;
            };
            let begun = self
                .view
                .manager(&member.pod_uid)
                .and_then(|manager| self.begin(restart, pod, manager));
            if let Err(refusal) = begun {
                // Some entries may be written already in the working copy: none of it is used.
                self.ledger = self.snapshot.ledger.clone();
                self.refused(&member.pod_uid, refusal);
                return;
            }
        }
    }

    /// Config everywhere, allocation and flush once, then every stop; then the checksums are frozen.
    fn stop_all(&mut self, restart: &Restart) {
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
    fn stop_side(&mut self, restart: &Restart, member: &Member) -> Result<bool, Move> {
        let Some(pod) = self.view.pod(&member.pod_uid) else {
            return Err(Move::Abort("its pod is gone".into()));
        };
        let late = |told: String| Move::Abort(format!("not stopped in time: {told}"));
        let over = self.is_over_time(member, 1);
        let manager = match self.view.manager(&member.pod_uid) {
            Ok(manager) => manager,
            Err(refusal) if over => return Err(late(refusal.sentence)),
            Err(refusal) => return Err(Move::Wait(refusal)),
        };
        if is_overtaken(manager, member) {
            return Err(interfered(manager, member));
        }
        if manager.sequence >= member.stop {
            return match manager.state {
                State::Stopped => Ok(true),
                _ if over => Err(late(told(manager))),
                _ => {
                    self.wait(&member.pod_uid, Code::Stopping, told(manager));
                    Ok(false)
                }
            };
        }
        if let Some(ending) = &restart.ending {
            return Err(Move::Abort(ending.reason.clone()));
        }
        if over {
            return Err(late("the new config was not mounted everywhere".into()));
        }
        if self.snapshot.cluster.paused {
            return Err(wait(Code::Paused, "paused (spec.paused): nothing is stopped"));
        }
        preflight(pod).map_err(Move::Wait)?;
        match self.until_mounted(member, pod, manager, false) {
            Some(turn) => Err(turn),
            None => Ok(false),
        }
    }

    /// Allocation and flush, once and for all; then everybody is told to stop.
    fn stop_everybody(&mut self, restart: &Restart) {
        if !restart.once.flush {
            let prepared = Self::active(restart).find_map(|(_, member)| self.tighten(member));
            if let Some(Move::Wait(refusal)) = prepared {
                self.wait_all(refusal.code, refusal.sentence);
                return;
            }
            if !self.snapshot.flushed.contains(WHOLE_CLUSTER) && self.view.engine().is_ok() {
                self.act(Action::Flush { node: WHOLE_CLUSTER.into() });
                self.wait_all(Code::Preparing, "flushing");
                return;
            }
            if let Some(restart) = &mut self.ledger.restart {
                restart.once.allocation = true;
                restart.once.flush = true;
            }
            return;
        }
        for (_, member) in Self::active(restart) {
            let Ok(manager) = self.view.manager(&member.pod_uid) else { continue };
            if manager.sequence < member.stop {
                self.act(Action::Stop {
                    uid: member.pod_uid.clone(),
                    sequence: member.stop,
                    drain: self.policy.drain,
                });
            }
        }
    }

    /// Everybody is stopped: what each will start with is fixed, in one write.
    fn freeze(&mut self, restart: &Restart) {
        for (index, member) in Self::active(restart) {
            let (Some(pod), Ok(manager)) =
                (self.view.pod(&member.pod_uid), self.view.manager(&member.pod_uid))
            else {
                return;
            };
            if let Some(turn) = self.until_mounted(member, pod, manager, true) {
                if self.is_over_time(member, 2) {
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
            && let Some(restart) = &mut self.ledger.restart
        {
            restart.frozen = Some(self.snapshot.now);
            for member in &mut restart.members {
                member.since = self.snapshot.now;
            }
        }
    }

    /// Starts, masters first and never waiting for anybody to be ready; then the proof of all.
    fn start_all(&mut self, restart: &Restart) {
        let masters_told =
            Self::active(restart).filter(|(_, member)| member.master).all(|(_, member)| {
                let manager = self.view.manager(&member.pod_uid);
                manager.is_ok_and(|manager| manager.sequence >= member.start)
            });
        let mut everybody = true;
        for (index, member) in Self::active(restart) {
            let may = member.master || masters_told;
            match self.start_side(restart, member, may) {
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
    fn start_side(&mut self, restart: &Restart, member: &Member, may: bool) -> Option<Move> {
        let manager = match self.view.manager(&member.pod_uid) {
            Ok(manager) => manager,
            Err(refusal) if self.is_over_time(member, 1) => {
                return Some(Move::Abort(format!("no answer in time: {}", refusal.sentence)));
            }
            Err(refusal) => return Some(Move::Wait(refusal)),
        };
        if is_overtaken(manager, member) {
            return Some(interfered(manager, member));
        }
        if manager.sequence < member.start {
            if !may {
                return Some(wait(Code::Barrier, "nodes that can be elected are started first"));
            }
            self.act(Action::Start {
                uid: member.pod_uid.clone(),
                sequence: member.start,
                checksum: member.expected.clone(),
                config: ConfigChoice::Mounted,
            });
            return Some(Move::Acted);
        }
        if was_refused(manager, member.start) {
            // The mount moved on after the freeze: it cannot be started on what was agreed.
            return Some(Move::Abort("its start was refused: the mounted config moved".into()));
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
    fn go_forward(&mut self, restart: &Restart) {
        if restart.direction != Direction::Open || self.has_changed() {
            return;
        }
        let joined = Self::active(restart).any(|(_, member)| {
            let told = self.view.manager(&member.pod_uid);
            told.is_ok_and(|manager| manager.sequence >= member.start)
                && matches!(self.has_joined(member), Ok(true))
        });
        if joined && let Some(restart) = &mut self.ledger.restart {
            restart.direction = Direction::Forward;
        }
    }

    /// Forward only: a start that failed is tried again, with a sequence of its own.
    fn try_again(&mut self, index: usize, member: &Member, reason: &str) {
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
        again.start = manager.sequence.max(member.start) + 1;
        self.set_member(index, again);
    }

    /// Everybody back: on the last good config where there is one.
    fn turn_back(&mut self, restart: &Restart, reason: &str) {
        let mut outcome = Outcome::RolledBack;
        for (index, member) in Self::active(restart) {
            let manager: Option<&Manager> = self.view.manager(&member.pod_uid).ok();
            let compensation = self.way_back(member, manager);
            if compensation.config == ConfigChoice::Mounted {
                outcome = Outcome::Aborted;
            }
            let mut back = member.clone();
            back.step = Step::Aborting;
            back.since = self.snapshot.now;
            let own = match compensation.config {
                ConfigChoice::LastGood => Outcome::RolledBack,
                ConfigChoice::Mounted => Outcome::Aborted,
            };
            back.compensation = Some(compensation);
            back.ending = Some(Ending { outcome: own, reason: reason.to_owned() });
            self.set_member(index, back);
        }
        if let Some(restart) = &mut self.ledger.restart {
            restart.direction = Direction::Back;
        }
        self.tell(None, Reason::RestartAborted, format!("Turning every node back: {reason}"));
        self.end_with(outcome, reason);
    }

    /// Everybody is back: allocation as it was, then all are done in one write.
    fn complete(&mut self, restart: &Restart) {
        if self.ledger.debts.allocation.is_some() {
            match self.view.allocation() {
                Err(refusal) => return self.wait_all(refusal.code, refusal.sentence),
                Ok(allocation) => {
                    if self.restore(allocation) {
                        let sentence = "allocation is being set back to what it was";
                        return self.wait_all(Code::RestoringAllocation, sentence);
                    }
                }
            }
        }
        for (index, member) in Self::active(restart) {
            let done = Ending { outcome: Outcome::Done, reason: String::new() };
            self.finish_member(index, member, done);
        }
    }
}
