//! The way back: an engine we stopped, or may have stopped, is told to run.

use super::member::{interfered, is_opposite, is_refused, was_refused};
use super::start::{is_ending, told};
use super::{Move, wait};
use crate::planner::Planner;
use crate::{
    Action, Code, Compensation, Ending, Manager, Member, Outcome, Reason, StartDebt, Step, Strategy,
};
use stayput_api::{ConfigChoice, Desired, RequestKind, State};

impl Planner<'_> {
    /// Turns a member back. The entry is written before anything is sent.
    pub(super) fn abort(&mut self, index: usize, member: &Member, reason: &str) {
        let manager = self.view.manager(&member.pod_uid).ok();
        let compensation = self.way_back(member, manager, self.policy.rollback);
        let outcome = outcome_of(compensation.config);
        self.tell(
            Some(&member.pod_uid),
            Reason::NodeRestartAborted,
            format!("{} is told to run again: {reason}", member.node),
        );
        self.end_with(outcome, format!("{}: {reason}", member.node));
        self.set_back(index, member, compensation, reason);
    }

    /// Writes down that a member is on its way back.
    pub(super) fn set_back(
        &mut self,
        index: usize,
        member: &Member,
        compensation: Compensation,
        reason: &str,
    ) {
        let outcome = outcome_of(compensation.config);
        let mut back = member.clone();
        back.step = Step::Aborting;
        back.since = self.snapshot.now;
        back.compensation = Some(compensation);
        back.ending = Some(Ending { outcome, reason: reason.to_owned() });
        self.set_member(index, back);
    }

    /// How to bring a member back: on the config that last worked, if there is another one than
    /// what it was to be started with and the policy wants it.
    pub(super) fn way_back(
        &self,
        member: &Member,
        manager: Option<&Manager>,
        rollback: bool,
    ) -> Compensation {
        let above = manager.map_or(0, |manager| manager.sequence).max(member.start_sequence) + 1;
        let Some(manager) = manager else {
            // An engine that still runs refuses the last good config and stays as it is; one that
            // was stopped is to be started on nothing else.
            let config = if rollback { ConfigChoice::LastGood } else { ConfigChoice::Mounted };
            return Compensation { stop_sequence: None, start_sequence: above, config };
        };
        let mounted = Compensation {
            stop_sequence: None,
            start_sequence: above,
            config: ConfigChoice::Mounted,
        };
        let Some(last_good) = manager.last_good.as_ref().filter(|_| rollback) else {
            return mounted;
        };
        match manager.state {
            // It runs: on what it had before, or on what our start gave it.
            State::Starting | State::Running => {
                let run = manager.run.as_ref().and_then(|run| run.checksum.as_ref());
                if run == Some(last_good) || manager.sequence < member.start_sequence {
                    return mounted;
                }
                let config = ConfigChoice::LastGood;
                Compensation { stop_sequence: Some(above), start_sequence: above + 1, config }
            }
            // It will be started anew.
            State::Stopped
            | State::Stopping
            | State::Killing
            | State::Backoff
            | State::Failed
            | State::Stuck => {
                if manager.mounted.as_ref() == Some(last_good) {
                    return mounted;
                }
                Compensation {
                    stop_sequence: None,
                    start_sequence: above,
                    config: ConfigChoice::LastGood,
                }
            }
        }
    }

    /// The next step of a member on its way back.
    pub(super) fn bring_back(&mut self, member: &Member) -> Move {
        let (Some(back), Some(ending)) = (&member.compensation, &member.ending) else {
            return Self::untouched("its entry in the ledger is not whole");
        };
        let manager = match self.view.manager(&member.pod_uid) {
            Ok(manager) => manager,
            Err(refusal)
                if refusal.code == Code::PodGone && self.view.successor(member).is_some() =>
            {
                return Move::Finish(ending.clone());
            }
            Err(refusal) if self.is_over_time(member, 1) => {
                let reason = format!("{}; then no answer: {}", ending.reason, refusal.message);
                return self.owe_start(member, back, ending.outcome, reason);
            }
            Err(refusal) => return Move::Wait(refusal),
        };
        if manager.sequence > back.start_sequence && is_refused(manager) {
            let next = self.way_back(member, Some(manager), self.turns_back());
            return Self::change_course(member, ending, next, manager.sequence);
        }
        if manager.sequence > back.start_sequence
            || is_opposite(manager, back.start_sequence, RequestKind::Start)
            || back.stop_sequence.is_some_and(|stop| is_opposite(manager, stop, RequestKind::Stop))
        {
            return interfered(manager, member);
        }
        let refused = was_refused(manager, back.start_sequence);
        if (manager.sequence < back.start_sequence || refused) && self.is_over_time(member, 1) {
            let reason = format!("{}; then {}", ending.reason, told(manager));
            return self.owe_start(member, back, ending.outcome, reason);
        }
        if manager.sequence < back.start_sequence {
            return self.send_back(member, manager, back, ending);
        }
        if refused {
            return self.after_refusal(member, manager, back, ending);
        }
        if !manager.durable || manager.desired != Desired::Running {
            if self.is_over_time(member, 1) {
                return self.owe_start(member, back, ending.outcome, ending.reason.clone());
            }
            return wait(Code::NotDurable, "told to run; its manager has not written it down yet");
        }
        let gives_up = matches!(manager.state, State::Failed | State::Backoff);
        if !gives_up && !self.is_over_time(member, 1) {
            match self.has_joined(member) {
                // An engine that was never stopped keeps its process.
                Ok(true) => {}
                Ok(false) if self.never_left(member, manager) => {}
                Ok(false) => {
                    return wait(Code::Aborting, "told to run again; not in the cluster yet");
                }
                Err(turn) => return turn,
            }
            if let Some(turn) = self.clean_up(member) {
                return turn;
            }
        }
        Move::Finish(ending.clone())
    }

    /// Stop and start of the way back.
    fn send_back(
        &mut self,
        member: &Member,
        manager: &Manager,
        back: &Compensation,
        ending: &Ending,
    ) -> Move {
        // A stop that was on its way has arrived meanwhile: what was right for an engine that ran
        // would start this one on the config that is given up.
        let sent = back.stop_sequence.is_some_and(|stop| manager.sequence >= stop);
        let better = self.way_back(member, Some(manager), self.turns_back());
        if !sent && better.config != back.config && manager.sequence >= member.stop_sequence {
            return Self::change_course(member, ending, better, back.start_sequence);
        }
        if let Some(stop) = back.stop_sequence
            && manager.sequence < stop
        {
            let uid = member.pod_uid.clone();
            self.act(Action::Stop { uid, sequence: stop, drain: 0 });
            return Move::Acted;
        }
        self.tell_to_run(member, manager, back)
    }

    /// The start of the way back, once nothing of the engine is being ended any more.
    fn tell_to_run(&mut self, member: &Member, manager: &Manager, back: &Compensation) -> Move {
        if is_ending(manager.state) || manager.state == State::Stuck {
            return wait(Code::Aborting, format!("{}; then it is told to run", told(manager)));
        }
        let uid = member.pod_uid.clone();
        self.act(Action::Start {
            uid,
            sequence: back.start_sequence,
            checksum: None,
            config: back.config,
        });
        Move::Acted
    }

    /// The start of the way back was refused: the engine is not what it was taken for, or has no
    /// last good config after all. Then what is mounted is what is left.
    fn after_refusal(
        &mut self,
        member: &Member,
        manager: &Manager,
        back: &Compensation,
        ending: &Ending,
    ) -> Move {
        let mut next = self.way_back(member, Some(manager), self.turns_back());
        if next.stop_sequence.is_none() && back.config == ConfigChoice::LastGood {
            next.config = ConfigChoice::Mounted;
        }
        if next.stop_sequence.is_none() && next.config == back.config {
            // There is no other way; the same request is judged afresh.
            return self.tell_to_run(member, manager, back);
        }
        Self::change_course(member, ending, next, back.start_sequence)
    }

    /// Whether the way back leads to the last good config: a coordinated restart turns back as a
    /// whole, whatever the policy says of single nodes.
    pub(super) fn turns_back(&self) -> bool {
        let restart = self.ledger.restart.as_ref();
        self.policy.rollback
            || restart.is_some_and(|one| one.request.strategy == Strategy::Coordinated)
    }

    /// Another way back, with sequences above those of the first.
    fn change_course(member: &Member, ending: &Ending, mut next: Compensation, above: u64) -> Move {
        let first = next.stop_sequence.unwrap_or(next.start_sequence);
        let up = (above + 1).saturating_sub(first);
        next.stop_sequence = next.stop_sequence.map(|stop| stop + up);
        next.start_sequence += up;
        let outcome = outcome_of(next.config);
        let mut again = member.clone();
        again.compensation = Some(next);
        again.ending = Some(Ending { outcome, ..ending.clone() });
        Move::Change(Box::new(again))
    }

    /// What cannot be repaired now is owed.
    fn owe_start(
        &mut self,
        member: &Member,
        back: &Compensation,
        outcome: Outcome,
        reason: String,
    ) -> Move {
        self.ledger.to_mut().debts.start.push(StartDebt {
            pod_uid: member.pod_uid.clone(),
            node: member.node.clone(),
            sequence: back.start_sequence,
            config: back.config,
            since: self.snapshot.now,
        });
        self.tell(
            Some(&member.pod_uid),
            Reason::DebtIncurred,
            format!("{} must be told to run as soon as its manager answers", member.node),
        );
        Move::Finish(Ending { outcome, reason })
    }

    /// Whether the process of before the restart still serves.
    fn never_left(&self, member: &Member, manager: &Manager) -> bool {
        manager.state == State::Running && self.lists_old_process(member)
    }
}

/// How it ends when a member comes back on this config.
pub(super) const fn outcome_of(config: ConfigChoice) -> Outcome {
    match config {
        ConfigChoice::LastGood => Outcome::RolledBack,
        ConfigChoice::Mounted => Outcome::Aborted,
    }
}
