//! A plan as a few lines: what is done, what is written, what is waited for. Sentences for people are
//! left out, as the pages of the scenarios have them.

use std::collections::BTreeSet;

use super::super::ledger_changes;
use super::super::world::describe_action;
use crate::{Action, Saved, Snapshot, plan, report};

/// The plan for a snapshot, under its name.
pub(super) fn of(name: &str, saved: &Saved) -> String {
    let Saved { snapshot, policy, .. } = saved;
    let plan = plan(snapshot, policy);
    let report = report(snapshot, policy, &plan);
    let mut lines = Vec::new();
    for action in &plan.actions {
        match action {
            Action::WriteLedger(ledger) => {
                let changes = ledger_changes::describe(&snapshot.ledger, ledger);
                lines.extend(changes.into_iter().map(|change| format!("ledger  {change}")));
            }
            Action::RecordEvent(event) => {
                let about = event.pod.as_deref().unwrap_or("the cluster");
                lines.push(format!("event   {} of {about}", event.reason.as_str()));
            }
            other => lines.push(format!("do      {}", describe_action(other))),
        }
    }
    for wait in &plan.waiting {
        let who = wait.pod.as_deref().unwrap_or("the cluster");
        lines.push(format!("wait    {who}: {}", wait.code.as_str()));
    }
    let blocked = report.blocked.as_deref().unwrap_or("nothing");
    lines.push(format!("shown   {}, blocked by {blocked}", report.phase));
    let is_true =
        |kind: &str| report.conditions.iter().any(|one| one.kind == kind && one.status == "True");
    let kinds: BTreeSet<&str> = report.conditions.iter().map(|one| one.kind.as_str()).collect();
    let kinds: Vec<&str> = kinds.into_iter().filter(|kind| is_true(kind)).collect();
    lines.push(format!("true    {}", kinds.join(" ")));
    lines.push(format!("again   in {} ms", plan.requeue_after));
    format!("=== {name}\n{}\n\n", with_names(snapshot, &lines.join("\n")))
}

/// The text with the names of pods instead of their uids.
fn with_names(snapshot: &Snapshot, text: &str) -> String {
    snapshot.pods.iter().fold(text.to_owned(), |text, pod| text.replace(&pod.uid, &pod.name))
}
