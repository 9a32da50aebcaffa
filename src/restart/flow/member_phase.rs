//! The phase that the pod of a member shows.

use crate::{Manager, Member, MemberStep, Phase, Restart, Strategy};
use stayput_api::State;

/// The phase that a member's pod shows; `None` once the member is finished. The phase follows from the ledger
/// and from the manager's report on our requests. `shown` is the phase on the pod now: a phase never goes
/// back to an earlier one.
pub(crate) fn phase_of(
    restart: &Restart,
    member: &Member,
    manager: Option<&Manager>,
    shown: Option<Phase>,
) -> Option<Phase> {
    let strategy = restart.request.strategy;
    let start = Phase::start(strategy);
    match member.step {
        MemberStep::Scheduled => Some(Phase::scheduled(strategy)),
        MemberStep::Finished => None,
        MemberStep::GivingBack => Some(Phase::stop(strategy)),
        MemberStep::Aborting => Some(start),
        MemberStep::Restarting if shown == Some(start) => Some(start),
        MemberStep::Restarting if strategy == Strategy::Coordinated => {
            Some(if restart.frozen.is_some() { start } else { Phase::StopCoordinated })
        }
        MemberStep::Restarting => {
            let is_stopped = manager.is_some_and(|manager| {
                manager.sequence >= member.start_sequence
                    || (manager.sequence >= member.stop_sequence && manager.state == State::Stopped)
            });
            Some(if is_stopped { start } else { Phase::Stop })
        }
    }
}
