//! The phase that a pod shows: follows from the ledger and what its manager says.

use super::{Manager, Member, Phase, Step, Strategy};

/// The phase of a member; none once it is over.
pub(crate) fn phase_of(
    member: &Member,
    strategy: Strategy,
    manager: Option<&Manager>,
) -> Option<Phase> {
    let started = manager.is_some_and(|manager| manager.sequence >= member.start);
    match member.step {
        Step::Scheduled => Some(Phase::scheduled(strategy)),
        Step::Restarting if !started => Some(Phase::stop(strategy)),
        Step::Restarting | Step::Aborting => Some(Phase::start(strategy)),
        Step::Finished => None,
    }
}
