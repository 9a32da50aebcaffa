//! A second opinion on every plan that any test makes: the safety list, as far as one snapshot and
//! one plan can show it, derived with code of its own. It shares types with `plan`, never a rule.

mod acts;
mod calls;
mod claims;
mod members;
mod owed;
mod patches;
mod supersedes;
mod view;
mod votes;
mod words;
mod writes;

use crate::{Action, Plan, Policy, Snapshot, plan};
use view::View;

/// What is wrong with the plan; empty if nothing is.
pub(crate) fn lint(snapshot: &Snapshot, policy: &Policy, plan: &Plan) -> Vec<String> {
    let mut wrong = Vec::new();
    let view = View::new(snapshot, policy);
    words::check(&view, plan, &mut wrong);
    shape(plan, &mut wrong);
    for action in &plan.actions {
        match action {
            Action::WriteLedger(ledger) => writes::check(&view, ledger, &mut wrong),
            Action::Stop { uid, sequence, .. } => {
                acts::stop(&view, plan, uid, *sequence, &mut wrong);
            }
            Action::Start { uid, sequence, checksum, config } => {
                let asked = acts::Start { uid, sequence: *sequence, checksum, config: *config };
                acts::start(&view, &asked, &mut wrong);
            }
            Action::TightenAllocation { value, marker } => {
                calls::tighten(&view, value, marker, &mut wrong);
            }
            Action::RestoreAllocation { before } => calls::restore(&view, before, &mut wrong),
            Action::Flush { node } => calls::flush(&view, node, &mut wrong),
            Action::PutRecord { node_id, reason } => {
                calls::put_record(&view, node_id, reason, &mut wrong);
            }
            Action::DeleteRecord { node_id } => calls::delete_record(&view, node_id, &mut wrong),
            Action::ExcludeVoter { node } => votes::exclude(&view, node, &mut wrong),
            Action::ClearVotingExclusions => votes::clear(&view, &mut wrong),
            Action::RecordEvent(event) => {
                if event.message.trim().is_empty() {
                    wrong.push(format!("an event without a sentence: {event:?}"));
                }
            }
            Action::AddFinalizer
            | Action::RemoveFinalizer
            | Action::ClaimTrigger { .. }
            | Action::ClearAnnotation { .. }
            | Action::PatchPod { .. } => patches::check(&view, action, &mut wrong),
        }
    }
    wrong
}

/// The plan for the snapshot, which must be without fault.
pub(crate) fn faultless_plan(snapshot: &Snapshot, policy: &Policy) -> Plan {
    let made = plan(snapshot, policy);
    let wrong = lint(snapshot, policy, &made);
    assert!(wrong.is_empty(), "{}\n{made:#?}\n{snapshot:#?}", wrong.join("\n"));
    made
}

/// What a plan may be made of, whatever it is about.
fn shape(plan: &Plan, wrong: &mut Vec<String>) {
    let is_write = |action: &Action| matches!(action, Action::WriteLedger(_));
    let is_told = |action: &Action| matches!(action, Action::RecordEvent(_));
    let writes = plan.actions.iter().filter(|action| is_write(action)).count();
    if writes > 1 {
        wrong.push("the ledger is written twice in one plan".into());
    }
    if writes == 1 {
        if !plan.actions.first().is_some_and(is_write) {
            wrong.push("the ledger is written, but not first".into());
        }
        for other in plan.actions.iter().filter(|action| !is_write(action) && !is_told(action)) {
            wrong.push(format!("done in the same plan as a ledger write: {other:?}"));
        }
    }
    for (at, action) in plan.actions.iter().enumerate() {
        if plan.actions[..at].contains(action) {
            wrong.push(format!("done twice in one plan: {action:?}"));
        }
    }
}
