//! Phases on pods that are not ours: what a person asks for there.

use super::annotations::{phase_on, shown_phase};
use super::intake::scheduled;
use crate::lookup::Lookup;
use crate::planner::Planner;
use crate::{
    Action, Member, Outcome, Phase, Pod, Reason, Request, Restart, Step, Strategy, Target,
    annotation,
};

impl<'a> Planner<'a> {
    /// Reads every phase that differs from what we last showed there.
    pub(super) fn listen_to_people(&mut self) {
        if self.snapshot.cluster.deleting {
            return;
        }
        let mut asked: Vec<(Strategy, &Pod)> = Vec::new();
        let strangers: Vec<&Pod> =
            self.view.pods().filter(|pod| phase_on(pod) != shown_phase(pod)).collect();
        if strangers.is_empty() {
            return;
        }
        let places = self.places();
        for pod in strangers {
            let word = phase_on(pod);
            let place = places.get(pod.uid.as_str()).copied();
            match word.map(Phase::parse) {
                None => self.phase_taken_away(pod, place),
                Some(Err(unknown)) => {
                    self.ignore_input(Some(&pod.uid), unknown.to_string());
                }
                Some(Ok(phase)) => {
                    if let Some(strategy) = self.phase_set(pod, place, phase) {
                        asked.push((strategy, pod));
                    }
                }
            }
        }
        self.open_for(&asked);
    }

    /// Where the ledger has its entry for a pod; those added in this plan are not among them.
    fn places(&self) -> Lookup<'a, usize> {
        let members = self.ledger.members().enumerate();
        members
            .filter_map(|(index, one)| Some((self.view.pod(&one.pod_uid)?.uid.as_str(), index)))
            .collect()
    }

    /// The entry at this place.
    fn entry(&self, place: Option<usize>) -> Option<(usize, &Member)> {
        let index = place?;
        Some((index, self.ledger.restart.as_ref()?.members.get(index)?))
    }

    /// A phase that is gone: its node waits no longer; in the middle of its turn it means cancel.
    fn phase_taken_away(&mut self, pod: &Pod, place: Option<usize>) {
        let Some((index, member)) = self.entry(place) else { return };
        match member.step {
            // All together means all together: without one of them there is no such restart.
            Step::Scheduled if self.is_coordinated() => {
                self.end_with(
                    Outcome::Aborted,
                    format!("cancelled: the phase of {} was taken away", pod.node),
                );
            }
            Step::Scheduled => {
                let mut withdrawn = member.clone();
                withdrawn.step = Step::Finished;
                withdrawn.ending = Some(crate::Ending {
                    outcome: Outcome::Aborted,
                    reason: "its phase was taken away".into(),
                });
                self.set_member(index, withdrawn);
            }
            Step::Restarting => match self.restart().as_deref().and_then(Restart::beyond_cancel) {
                // What is shown there is put back by `show_phases`.
                Some(why) => {
                    let message = format!(
                        "The phase of {} was taken away; put back, for its restart cannot be \
                         cancelled any more: {why}",
                        pod.node
                    );
                    self.tell(Some(&pod.uid), Reason::PhaseRewritten, message);
                }
                None => self.end_with(
                    Outcome::Aborted,
                    format!("cancelled: the phase of {} was taken away", pod.node),
                ),
            },
            Step::Aborting | Step::Finished => {}
        }
    }

    fn is_coordinated(&self) -> bool {
        self.restart().is_some_and(|one| one.request.strategy == Strategy::Coordinated)
    }

    /// A phase that somebody wrote; the strategy if it asks for a restart that is not under way.
    fn phase_set(&mut self, pod: &Pod, place: Option<usize>, phase: Phase) -> Option<Strategy> {
        let entry = self.entry(place);
        let ours = entry.as_ref().is_some_and(|(_, member)| member.step != Step::Finished);
        if ours {
            // What we have shown there is put back by `show_phases`.
            let message = format!("{} on {} is ours to move; put back", phase.as_str(), pod.node);
            if shown_phase(pod).is_some() {
                self.tell(Some(&pod.uid), Reason::PhaseRewritten, message);
            }
            return None;
        }
        let Some(strategy) = phase.asks_for() else {
            self.tell(
                Some(&pod.uid),
                Reason::InputIgnored,
                format!("{} on {} asks for nothing and is removed", phase.as_str(), pod.node),
            );
            self.annotate(&pod.uid, &[(annotation::PHASE, None), (annotation::SHOWN, None)]);
            return None;
        };
        if self.is_to_be_stopped(pod) {
            let message = format!("{} is kept stopped: it is not restarted", pod.node);
            self.ignore_input(Some(&pod.uid), message);
            return None;
        }
        let joins = self.ledger.restart.as_ref().is_some_and(|restart| {
            restart.ending.is_none() && restart.request.strategy == strategy
        });
        if joins && place.is_none() && strategy != Strategy::Coordinated {
            let member = scheduled(pod, self.snapshot.now);
            if let Some(restart) = &mut self.ledger.to_mut().restart {
                restart.members.push(member);
            }
            return None;
        }
        Some(strategy)
    }

    /// Opens one restart for the pods on which the same was asked; others wait for its end.
    fn open_for(&mut self, asked: &[(Strategy, &Pod)]) {
        let Some(strategy) = asked.iter().map(|(strategy, _)| *strategy).min() else { return };
        if self.ledger.restart.is_some() {
            for (_, pod) in asked {
                self.wait(
                    &pod.uid,
                    crate::Code::NotItsTurn,
                    "its restart begins when the one under way is over",
                );
            }
            return;
        }
        let mut nodes: Vec<String> = asked
            .iter()
            .filter(|(one, _)| *one == strategy)
            .map(|(_, pod)| pod.node.clone())
            .collect();
        nodes.sort();
        let id = self.snapshot.fresh_id.clone();
        let target = Target { nodes, ..Target::default() };
        self.remember(&id);
        self.open(Request { id, strategy, target, ..Request::default() });
    }

    /// Whether somebody wants this node to stay stopped.
    pub(super) fn is_to_be_stopped(&self, pod: &Pod) -> bool {
        self.snapshot.cluster.stopped.contains(&pod.node)
            || pod.annotations.get(annotation::STOPPED).is_some_and(|value| value == "true")
    }

    /// Takes an annotation from the SearchCluster, if it still has the value seen.
    pub(super) fn clear(&mut self, key: &str) {
        if let Some(value) = self.snapshot.cluster.annotations.get(key) {
            self.act(Action::ClearAnnotation { key: key.to_owned(), value: value.clone() });
        }
    }
}
