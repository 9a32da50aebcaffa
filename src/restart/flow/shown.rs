//! The phase of a member, and the phase that is on its pod.

use crate::{Manager, Member, Phase, Pod, Restart, Step, Strategy, annotation};
use stayput_api::State;

/// The phase a member's pod shows; `None` once it is over. It follows from the ledger and from the
/// manager's report on our requests. `shown` is the phase on the pod now: a phase never goes back
/// to an earlier one.
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
        Step::GivingBack => Some(Phase::stop(strategy)),
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

/// The phase annotation of the pod, whether we or a person wrote it.
pub(super) fn phase_on(pod: &Pod) -> Option<&str> {
    pod.annotations.get(annotation::PHASE).map(String::as_str)
}

/// The restart id and the phase that we last wrote on the pod.
pub(super) fn shown(pod: &Pod) -> Option<(&str, &str)> {
    pod.annotations.get(annotation::SHOWN)?.split_once(' ')
}

/// The phase that we last wrote on the pod.
pub(super) fn shown_phase(pod: &Pod) -> Option<&str> {
    shown(pod).map(|(_, phase)| phase)
}

/// The phase of this restart that the pod shows already; none if it shows one of another restart.
pub(crate) fn shown_of(id: &str, pod: &Pod) -> Option<Phase> {
    let (_, phase) = shown(pod).filter(|(of, _)| *of == id)?;
    Phase::parse(phase).ok()
}
