//! Checks every plan that any test makes against the safety list, as far as one snapshot and one plan
//! can show it. It shares types with `plan`, but no rules: all checks are written independently.

mod debts;
mod down;
mod drains;
mod engine_calls;
mod facts;
mod labels;
mod ledger_writes;
mod left_out;
mod members;
mod messages;
mod outages;
mod patches;
mod requests;
mod slots;
mod superseding;
mod updates;
mod votes;
mod waits;

use crate::{Action, Plan, Policy, Snapshot, plan};
use facts::Input;

/// The faults of the plan; empty if there are none.
pub(crate) fn lint(snapshot: &Snapshot, policy: &Policy, plan: &Plan) -> Vec<String> {
    let mut wrong = Vec::new();
    let facts = Input::new(snapshot, policy);
    waits::check(&facts, plan, &mut wrong);
    slots::check(&facts, plan, &mut wrong);
    messages::check(&facts, plan, &mut wrong);
    shape(plan, &mut wrong);
    for action in &plan.actions {
        match action {
            Action::WriteLedger(ledger) => ledger_writes::check(&facts, ledger, &mut wrong),
            Action::Stop { uid, sequence, resume, exit, .. } => {
                updates::fits(&facts, uid, &mut wrong);
                updates::exit(&facts, uid, *sequence, *exit, &mut wrong);
                labels::stop(&facts, uid, &mut wrong);
                requests::stop(&facts, plan, uid, *sequence, &mut wrong);
                requests::resume(&facts, uid, *sequence, resume.as_ref(), &mut wrong);
            }
            Action::Drain { uid, sequence } => {
                drains::begin(&facts, plan, uid, *sequence, &mut wrong);
            }
            Action::EndDrain { uid, sequence, drain, resume, exit } => {
                updates::exit(&facts, uid, *sequence, *exit, &mut wrong);
                drains::end(&facts, uid, *sequence, *drain, &mut wrong);
                requests::resume(&facts, uid, *sequence, resume.as_ref(), &mut wrong);
            }
            Action::Start { uid, sequence, checksum, config } => {
                let asked = requests::Start { uid, sequence: *sequence, checksum, config: *config };
                requests::start(&facts, &asked, &mut wrong);
            }
            Action::TightenAllocation { value, marker } => {
                engine_calls::tighten(&facts, value, marker, &mut wrong);
            }
            Action::RestoreAllocation { before } => {
                engine_calls::restore(&facts, before, &mut wrong)
            }
            Action::Flush { node } => engine_calls::flush(&facts, node, &mut wrong),
            Action::PutRecord { node_id, reason, .. } => {
                engine_calls::put_record(&facts, node_id, reason, &mut wrong);
            }
            Action::DeleteRecord { node_id } => {
                engine_calls::delete_record(&facts, node_id, &mut wrong)
            }
            Action::ExcludeVoter { node } => votes::exclude(&facts, node, &mut wrong),
            Action::ClearVotingExclusions => votes::clear(&facts, &mut wrong),
            Action::RecordEvent(event) => {
                if event.message.trim().is_empty() {
                    wrong.push(format!("an event without a message: {event:?}"));
                }
            }
            Action::PatchMetadata { uid, labels, annotations } => {
                updates::metadata(&facts, uid, labels, annotations, &mut wrong);
            }
            Action::PatchImages { uid, images } => {
                updates::patch(&facts, uid, images, updates::Field::Images, &mut wrong);
            }
            Action::Resize { uid, resources } => {
                updates::patch(&facts, uid, resources, updates::Field::Resources, &mut wrong);
            }
            Action::DeletePod { uid } => {
                updates::fits(&facts, uid, &mut wrong);
                updates::delete(&facts, uid, &mut wrong);
            }
            // No scenario has node sets: `tests/leaving` proves these.
            Action::ExcludeNames { .. }
            | Action::RemoveNode { .. }
            | Action::RemoveNodeSet { .. } => {}
            Action::AddFinalizer
            | Action::RemoveFinalizer
            | Action::ClaimTrigger { .. }
            | Action::ClearAnnotation { .. }
            | Action::PatchPod { .. } => patches::check(&facts, action, &mut wrong),
        }
    }
    wrong
}

/// The plan for the snapshot, which must have no faults.
pub(crate) fn faultless_plan(snapshot: &Snapshot, policy: &Policy) -> Plan {
    let made = plan(snapshot, policy);
    let wrong = lint(snapshot, policy, &made);
    assert!(wrong.is_empty(), "{}\n{made:#?}\n{snapshot:#?}", wrong.join("\n"));
    made
}

/// Which actions may be together in one plan.
fn shape(plan: &Plan, wrong: &mut Vec<String>) {
    let is_write = |action: &Action| matches!(action, Action::WriteLedger(_));
    let is_event = |action: &Action| matches!(action, Action::RecordEvent(_));
    let writes = plan.actions.iter().filter(|action| is_write(action)).count();
    if writes > 1 {
        wrong.push("the ledger is written twice in one plan".into());
    }
    if writes == 1 {
        if !plan.actions.first().is_some_and(is_write) {
            wrong.push("the ledger is written, but not first".into());
        }
        for other in plan.actions.iter().filter(|action| !is_write(action) && !is_event(action)) {
            wrong.push(format!("done in the same plan as a ledger write: {other:?}"));
        }
    }
    for (at, action) in plan.actions.iter().enumerate() {
        if plan.actions[..at].contains(action) {
            wrong.push(format!("done twice in one plan: {action:?}"));
        }
    }
}
