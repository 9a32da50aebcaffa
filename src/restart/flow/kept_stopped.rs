//! Nodes kept stopped because somebody asked for it; their pods stay.

use super::member::was_refused;
use super::start::is_ending;
use crate::blocker::{Check, refuse};
use crate::lookup::Lookup;
use crate::planner::Planner;
use crate::rules::preflight;
use crate::{Action, Code, Ending, KeptStopped, Member, Outcome, Pod, Reason, Step};
use stayput_api::{ConfigChoice, Desired, State};

impl Planner<'_> {
    /// Fences what shall be stopped, lifts what shall not, one at a time and by the rules.
    pub(super) fn keep_fences(&mut self) {
        let pods: Vec<&Pod> = self.view.pods().collect();
        self.drop_fences(&pods);
        let fences = self.ledger.kept_stopped.iter().enumerate();
        let places: Lookup<'_, usize> = fences
            .filter_map(|(index, fence)| Some((&*self.view.pod(&fence.pod_uid)?.uid, index)))
            .collect();
        for pod in pods {
            // Those that were lifted in this plan have made the others move up.
            let index = places.get(pod.uid.as_str()).and_then(|place| {
                let kept =
                    &self.ledger.kept_stopped[..self.ledger.kept_stopped.len().min(place + 1)];
                kept.iter().rposition(|fence| fence.pod_uid == pod.uid)
            });
            match (index, self.is_to_be_stopped(pod)) {
                (None, false) => {}
                (None, true) => self.fence(pod),
                (Some(index), true) if self.ledger.kept_stopped[index].releasing => {
                    self.fence_again(index, pod)
                }
                (Some(index), true) => self.hold(index, pod),
                (Some(index), false) => self.lift(index, pod),
            }
        }
    }

    /// With another pod in its place a fence is over; a list that lacks the pod says nothing.
    fn drop_fences(&mut self, pods: &[&Pod]) {
        if self.ledger.kept_stopped.is_empty() {
            return;
        }
        // The pod of a node's name, and whether there are several.
        let mut by_node: Lookup<'_, (&str, bool)> = Lookup::default();
        for pod in pods {
            let found = by_node.entry(&pod.node);
            found.and_modify(|(_, several)| *several = true).or_insert((&pod.uid, false));
        }
        let is_over = |fence: &KeptStopped| {
            let found = by_node.get(fence.node.as_str());
            found.is_some_and(|(uid, several)| *several || *uid != fence.pod_uid)
        };
        if self.ledger.kept_stopped.iter().any(is_over) {
            self.ledger.to_mut().kept_stopped.retain(|fence| !is_over(fence));
        }
    }

    /// Writes down that a node will be stopped, if the rules allow it.
    fn fence(&mut self, pod: &Pod) {
        if !self.has_finalizer() {
            return;
        }
        let allowed = self.may_fence(pod).and_then(|()| self.view.manager(&pod.uid));
        match allowed {
            Ok(manager) => {
                let member = self.under_way(pod);
                let taken = member.map_or(0, |member| {
                    member
                        .compensation
                        .as_ref()
                        .map_or(member.start_sequence, |back| back.start_sequence)
                });
                let sequence = manager.sequence.max(taken) + 1;
                self.leave_restart(pod);
                self.ledger.to_mut().kept_stopped.push(KeptStopped {
                    pod_uid: pod.uid.clone(),
                    node: pod.node.clone(),
                    sequence,
                    releasing: false,
                });
                self.tell(
                    Some(&pod.uid),
                    Reason::NodeStopped,
                    format!("{} is stopped and kept so; its pod stays", pod.node),
                );
            }
            Err(refusal) => self.refused(&pod.uid, refusal),
        }
    }

    fn may_fence(&self, pod: &Pod) -> Check {
        let manager = self.view.manager(&pod.uid)?;
        self.not_paused()?;
        if self.snapshot.cluster.deleting {
            return refuse(Code::Idle, "the SearchCluster is being deleted: nothing is stopped");
        }
        if !self.snapshot.cluster.overlaps.is_empty() {
            return refuse(Code::OverlappingSelectors, "another SearchCluster selects it as well");
        }
        let owed = self.ledger.debts.start.iter().any(|debt| debt.pod_uid != pod.uid);
        if owed || self.is_exclusion_due() {
            return refuse(Code::Debts, "something is owed from before (status.debts)");
        }
        if manager.state == State::Stopped {
            // It costs nothing; the fence only makes it last.
            return Ok(());
        }
        let mut others = self.ledger.under_way();
        if let Some(other) = others.find(|member| member.pod_uid != pod.uid) {
            let message = format!("{} is under way; one node at a time", other.node);
            return refuse(Code::AnotherInProgress, message);
        }
        preflight(pod)?;
        self.may_keep_stopped(pod)
    }

    /// The pod's entry in the restart, if it holds a slot.
    fn under_way(&self, pod: &Pod) -> Option<&Member> {
        self.ledger.under_way().find(|member| member.pod_uid == pod.uid)
    }

    /// A member that shall be kept stopped is waited for by nobody.
    fn leave_restart(&mut self, pod: &Pod) {
        let Some(restart) = &self.ledger.restart else { return };
        let found = restart.members.iter().enumerate();
        let found = found.filter(|(_, member)| member.step != Step::Finished);
        let Some((index, member)) = found
            .map(|(index, member)| (index, member.clone()))
            .find(|(_, member)| member.pod_uid == pod.uid)
        else {
            return;
        };
        let mut left = member;
        left.step = Step::Finished;
        left.compensation = None;
        left.ending = Some(Ending {
            outcome: Outcome::Interfered,
            reason: "it is to be kept stopped".into(),
        });
        if let Some(debt) = &mut self.ledger.to_mut().debts.allocation {
            debt.holders.retain(|holder| *holder != pod.uid);
        }
        self.set_member(index, left);
    }

    /// Stops a fenced node, and says that it is meant to be.
    fn hold(&mut self, index: usize, pod: &Pod) {
        let fence = self.ledger.kept_stopped[index].clone();
        let manager = match self.view.manager(&pod.uid) {
            Ok(manager) => manager,
            Err(refusal) => return self.refused(&pod.uid, refusal),
        };
        if manager.sequence < fence.sequence {
            // The rules once more, on this look at the world.
            if let Err(refusal) = self.may_fence(pod) {
                return self.refused(&pod.uid, refusal);
            }
            self.act(Action::Stop {
                uid: pod.uid.clone(),
                sequence: fence.sequence,
                drain: self.policy.drain,
            });
            return;
        }
        let running = manager.desired == Desired::Running;
        let message = match (running, &manager.last_request) {
            (true, Some(last)) => {
                format!("{} started it although it is to be kept stopped; left alone", last.by)
            }
            (true, None) => "it runs although it is to be kept stopped; left alone".to_owned(),
            (false, _) => {
                "kept stopped on request (spec.stopped or stayput.dev/stopped)".to_owned()
            }
        };
        let code = if running { Code::Interfered } else { Code::KeptStopped };
        self.wait(&pod.uid, code, message);
    }

    /// It shall be stopped again before the releasing came to its end.
    fn fence_again(&mut self, index: usize, pod: &Pod) {
        let manager = match self.view.manager(&pod.uid) {
            Ok(manager) => manager,
            Err(refusal) => return self.refused(&pod.uid, refusal),
        };
        let sequence = manager.sequence.max(self.ledger.kept_stopped[index].sequence) + 1;
        let fence = &mut self.ledger.to_mut().kept_stopped[index];
        fence.releasing = false;
        fence.sequence = sequence;
    }

    /// Tells a node to run that is no longer to be kept stopped.
    fn lift(&mut self, index: usize, pod: &Pod) {
        let fence = self.ledger.kept_stopped[index].clone();
        let manager = match self.view.manager(&pod.uid) {
            Ok(manager) => manager,
            Err(refusal) => return self.refused(&pod.uid, refusal),
        };
        if !fence.releasing {
            let sequence = manager.sequence.max(fence.sequence) + 1;
            let fence = &mut self.ledger.to_mut().kept_stopped[index];
            fence.releasing = true;
            fence.sequence = sequence;
            return;
        }
        if manager.sequence < fence.sequence || was_refused(manager, fence.sequence) {
            if is_ending(manager.state) {
                return self.wait(&pod.uid, Code::Stopping, "it is started once it is stopped");
            }
            self.act(Action::Start {
                uid: pod.uid.clone(),
                sequence: fence.sequence,
                checksum: None,
                config: ConfigChoice::Mounted,
            });
            return;
        }
        self.ledger.to_mut().kept_stopped.remove(index);
        self.tell(Some(&pod.uid), Reason::NodeStarted, format!("{} is told to run", pod.node));
    }
}
