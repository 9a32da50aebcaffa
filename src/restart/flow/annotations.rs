//! What the pods show: the phase of the ADR, and how the last restart ended.

use crate::lookup::Lookup;
use crate::planner::Planner;
use crate::{
    HistoryEntry, LastRestart, Manager, Member, Outcome, Phase, Pod, Restart, Step, Strategy,
    annotation,
};
use stayput_api::State;

/// The phase a member's pod shows; `None` once it is over. It follows from the ledger and from what
/// the manager says of our requests. `shown` is what is there already: a phase never goes back.
pub(crate) fn phase_of(
    restart: &Restart,
    member: &Member,
    manager: Option<&Manager>,
    shown: Option<Phase>,
) -> Option<Phase> {
    let strategy = restart.request.strategy;
    let start = Phase::start(strategy);
    match member.step {
        Step::Scheduled => Some(Phase::scheduled(strategy)),
        Step::Finished => None,
        Step::Aborting => Some(start),
        Step::Restarting if shown == Some(start) => Some(start),
        Step::Restarting if strategy == Strategy::Coordinated => {
            Some(if restart.frozen.is_some() { start } else { Phase::StopCoordinated })
        }
        Step::Restarting => {
            let is_stopped = manager.is_some_and(|manager| {
                manager.sequence >= member.start_sequence
                    || (manager.sequence >= member.stop_sequence && manager.state == State::Stopped)
            });
            Some(if is_stopped { start } else { Phase::Stop })
        }
    }
}

impl Planner<'_> {
    /// Brings every pod's annotations to what the ledger says.
    pub(super) fn show_phases(&mut self) {
        if self.has_changed() {
            return;
        }
        let ledger = &self.snapshot.ledger;
        let members: Lookup<'_, &Member> =
            ledger.members().map(|member| (member.pod_uid.as_str(), member)).collect();
        let pods: Vec<&Pod> = self.view.pods().collect();
        for pod in pods {
            match (&ledger.restart, members.get(pod.uid.as_str())) {
                (Some(restart), Some(member)) => self.show(restart, member, pod),
                (Some(_) | None, _) => self.sweep(pod, &ledger.history),
            }
        }
    }

    fn show(&mut self, restart: &Restart, member: &Member, pod: &Pod) {
        let id = &restart.request.id;
        let manager = pod.manager.as_ref().ok();
        match phase_of(restart, member, manager, shown_of(id, pod)) {
            Some(phase) => {
                let phase = phase.as_str();
                if phase_on(pod) == Some(phase) && shown(pod) == Some((id, phase)) {
                    return;
                }
                self.annotate(
                    &pod.uid,
                    &[
                        (annotation::PHASE, Some(phase.to_owned())),
                        (annotation::SHOWN, Some(format!("{id} {phase}"))),
                    ],
                );
            }
            None if pod.annotations.contains_key(annotation::SHOWN) => {
                let last = last_of(id, member, self.snapshot.now.since(member.since) / 1000);
                self.take_off(pod, last);
            }
            None => {}
        }
    }

    /// Takes away what an ended restart has left on a pod.
    fn sweep(&mut self, pod: &Pod, history: &[HistoryEntry]) {
        let Some(shown) = pod.annotations.get(annotation::SHOWN) else { return };
        let (id, phase) = shown.split_once(' ').unwrap_or((shown, ""));
        if !self.ledger.has_handled(id) {
            // Another SearchCluster's, which selects the pod as well.
            return;
        }
        // One that still waited when the restart ended never had its turn.
        let had_its_turn = !Phase::parse(phase).is_ok_and(Phase::is_scheduled);
        // A patch that was late comes after the pod's own word has been written.
        let told = pod.annotations.get(annotation::LAST_RESTART).is_some_and(|text| {
            serde_json::from_str::<LastRestart>(text).is_ok_and(|last| last.id == id)
        });
        let entry = history.iter().rev().find(|entry| had_its_turn && !told && entry.id == id);
        let last = entry.map(|entry| LastRestart {
            id: entry.id.clone(),
            outcome: entry.outcome,
            reason: entry.reason.clone(),
            started: entry.started,
            seconds: entry.seconds,
        });
        self.take_off(pod, last);
    }

    fn take_off(&mut self, pod: &Pod, last: Option<LastRestart>) {
        let mut wanted = vec![(annotation::SHOWN, None)];
        // A phase that a person has written meanwhile is a new wish.
        if phase_on(pod) == shown_phase(pod) {
            wanted.push((annotation::PHASE, None));
        }
        if let Some(last) = last.and_then(|last| serde_json::to_string(&last).ok()) {
            wanted.push((annotation::LAST_RESTART, Some(last)));
        }
        self.annotate(&pod.uid, &wanted);
    }
}

/// What stands on the pod as its phase, whoever wrote it.
pub(super) fn phase_on(pod: &Pod) -> Option<&str> {
    pod.annotations.get(annotation::PHASE).map(String::as_str)
}

/// The restart and the phase that we have shown on the pod last.
fn shown(pod: &Pod) -> Option<(&str, &str)> {
    pod.annotations.get(annotation::SHOWN)?.split_once(' ')
}

/// Of these the phase.
pub(super) fn shown_phase(pod: &Pod) -> Option<&str> {
    shown(pod).map(|(_, phase)| phase)
}

/// The phase of this restart that the pod shows already; another restart's says nothing of it.
pub(crate) fn shown_of(id: &str, pod: &Pod) -> Option<Phase> {
    let (_, phase) = shown(pod).filter(|(of, _)| *of == id)?;
    Phase::parse(phase).ok()
}

/// How a member's turn ended, for its pod; nothing if it never had one.
fn last_of(id: &str, member: &Member, seconds: u64) -> Option<LastRestart> {
    if member.stop_sequence == 0 {
        return None;
    }
    let ending = member.ending.as_ref();
    Some(LastRestart {
        id: id.to_owned(),
        outcome: ending.map_or(Outcome::Done, |ending| ending.outcome),
        reason: ending.map_or(String::new(), |ending| ending.reason.clone()),
        started: member.since,
        seconds,
    })
}
