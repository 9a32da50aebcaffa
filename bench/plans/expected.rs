//! What a plan contains, by number: whether it fits the name of its situation.

use stayput_restart::{Action, Code, Plan, Reason};

pub(super) fn waits(plan: &Plan, code: Code) -> usize {
    plan.waiting.iter().filter(|one| one.pod.is_some() && one.code == code).count()
}

/// The number of pods that one of the ten predicates blocks.
pub(super) fn ruled(plan: &Plan) -> usize {
    plan.waiting
        .iter()
        .filter(|one| one.pod.is_some() && matches!(one.code, Code::Predicate(_)))
        .count()
}

fn tells(plan: &Plan, wanted: &[Reason]) -> usize {
    let is_wanted = |action: &&Action| matches!(action, Action::RecordEvent(event) if wanted.contains(&event.reason));
    plan.actions.iter().filter(is_wanted).count()
}

pub(super) fn slots(plan: &Plan) -> usize {
    tells(plan, &[Reason::NodeRestartStarted, Reason::MasterRestartStarted])
}

pub(super) fn backs(plan: &Plan) -> usize {
    tells(plan, &[Reason::NodeRestarted])
}

pub(super) fn stops(plan: &Plan) -> usize {
    plan.actions.iter().filter(|action| matches!(action, Action::Stop { .. })).count()
}

pub(super) fn patches(plan: &Plan) -> usize {
    plan.actions.iter().filter(|action| matches!(action, Action::PatchPod { .. })).count()
}

/// The same for the ledger as it is written.
pub(super) fn members(plan: &Plan) -> usize {
    plan.actions
        .iter()
        .find_map(|action| match action {
            Action::WriteLedger(ledger) => Some(ledger.restart.as_ref()?.members.len()),
            _ => None,
        })
        .unwrap_or(0)
}
