//! For every pod there is an action, or a reason to wait.

use std::collections::BTreeSet;

use super::facts::Input;
use crate::{Action, Ledger, MemberStep, Plan};

/// The shortest time until the next plan if there is nothing to do, in milliseconds.
const MIN_IDLE_REQUEUE: u64 = 1_000;

pub(super) fn check(facts: &Input, plan: &Plan, wrong: &mut Vec<String>) {
    let acted = acted_on(facts, plan);
    for pod in &facts.snapshot.pods {
        let times =
            plan.waiting.iter().filter(|wait| wait.pod.as_deref() == Some(&*pod.uid)).count();
        if times > 1 {
            wrong.push(format!("{} waits {times} times", pod.name));
        }
        if times == 0 && !acted.contains(&pod.uid) {
            wrong.push(format!("{} is neither acted on nor waiting", pod.name));
        }
    }
    for wait in &plan.waiting {
        if wait.message.trim().is_empty() {
            wrong.push(format!("{:?} waits without a message: {:?}", wait.node, wait.code));
        }
        if wait.pod.as_ref().is_some_and(|uid| facts.pod(uid).is_none()) {
            wrong.push(format!("{:?} waits and is no pod of this snapshot", wait.pod));
        }
    }
    let writes = matches!(plan.actions.first(), Some(Action::WriteLedger(_)));
    if !writes && is_over_for_long(facts) {
        wrong.push("L1: all nodes are done, and the restart waits for its pods without end".into());
    }
    if plan.requeue_after == 0 && !writes {
        wrong.push("the plan is made again at once without end: requeue_after is 0".into());
    }
    let ledger = &facts.snapshot.ledger;
    let nothing_goes_on = plan.actions.is_empty()
        && ledger.restart.is_none()
        && ledger.queued.is_none()
        && ledger.debts.is_empty();
    if nothing_goes_on && plan.requeue_after < MIN_IDLE_REQUEUE {
        wrong.push(format!("plans too often at rest: again after {} ms", plan.requeue_after));
    }
}

/// No node of the restart is under way or waits, and a phase has passed since that was seen to last; or
/// it has lasted for a phase, and that was not seen.
fn is_over_for_long(facts: &Input) -> bool {
    let Some(restart) = facts.restart() else { return false };
    let is_left = |step| match step {
        MemberStep::Finished => false,
        MemberStep::Scheduled => restart.ending.is_none(),
        MemberStep::Restarting | MemberStep::GivingBack | MemberStep::Aborting => true,
    };
    let done = restart.members.iter().filter(|member| member.step == MemberStep::Finished);
    let last = done.map(|member| member.since).fold(restart.started, crate::Time::max);
    let since = restart.stuck_since.filter(|at| *at >= last).unwrap_or(last);
    let lasts = facts.snapshot.now.since(since) >= facts.policy.phase_timeout;
    lasts && !restart.members.iter().any(|member| is_left(member.step))
}

/// Pods for which an action does something.
fn acted_on(facts: &Input, plan: &Plan) -> BTreeSet<String> {
    let mut acted = BTreeSet::new();
    let under_way = |acted: &mut BTreeSet<String>| {
        for member in facts.restart().map(|restart| &restart.members[..]).unwrap_or_default() {
            if member.is_under_way() {
                acted.insert(member.pod_uid.clone());
            }
        }
    };
    for action in &plan.actions {
        match action {
            Action::PatchPod { uid, .. }
            | Action::PatchMetadata { uid, .. }
            | Action::PatchImages { uid, .. }
            | Action::Resize { uid, .. }
            | Action::DeletePod { uid }
            | Action::Stop { uid, .. }
            | Action::Drain { uid, .. }
            | Action::EndDrain { uid, .. }
            | Action::Start { uid, .. } => {
                acted.insert(uid.clone());
            }
            Action::WriteLedger(next) => changed(&facts.snapshot.ledger, next, &mut acted),
            Action::TightenAllocation { .. }
            | Action::RestoreAllocation { .. }
            | Action::Flush { .. }
            | Action::PutRecord { .. }
            | Action::ExcludeVoter { .. }
            | Action::ClearVotingExclusions
            | Action::DeleteRecord { .. }
            | Action::ExcludeNames { .. }
            | Action::RemoveNode { .. }
            | Action::RemoveNodeSet { .. }
            | Action::AddFinalizer => under_way(&mut acted),
            Action::RecordEvent(_)
            | Action::RemoveFinalizer
            | Action::ClaimTrigger { .. }
            | Action::ClearAnnotation { .. } => {}
        }
    }
    acted
}

/// Pods whose entries a ledger write changes.
fn changed(old: &Ledger, new: &Ledger, acted: &mut BTreeSet<String>) {
    let members = |ledger: &Ledger| {
        ledger.restart.as_ref().map(|restart| restart.members.clone()).unwrap_or_default()
    };
    let (before, after) = (members(old), members(new));
    for member in before.iter().chain(&after) {
        if !(before.contains(member) && after.contains(member)) {
            acted.insert(member.pod_uid.clone());
        }
    }
    for entry in old.kept_stopped.iter().chain(&new.kept_stopped) {
        if !(old.kept_stopped.contains(entry) && new.kept_stopped.contains(entry)) {
            acted.insert(entry.pod_uid.clone());
        }
    }
    for debt in old.debts.start.iter().chain(&new.debts.start) {
        if !(old.debts.start.contains(debt) && new.debts.start.contains(debt)) {
            acted.insert(debt.pod_uid.clone());
        }
    }
}
