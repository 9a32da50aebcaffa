//! What a message advises: nothing that costs data or availability comes first. A deletion that
//! waits says for what.

use crate::{Action, Plan, Policy, Snapshot, report};

/// Settings that let a rule pass which protects something.
const COSTLY: [&str; 3] = ["allowOutage: true", "--allow-outage", "disabledPredicates: ["];

pub(super) fn check(plan: &Plan, wrong: &mut Vec<String>) {
    let waits = plan.waiting.iter().map(|wait| &*wait.message);
    let events = plan.actions.iter().filter_map(|action| match action {
        Action::RecordEvent(event) => Some(event.message.as_str()),
        _ => None,
    });
    for message in waits.chain(events) {
        let costly = COSTLY.iter().filter_map(|setting| message.find(setting)).min();
        if costly.is_some_and(|at| !message[..at].contains("; as a last resort, ")) {
            wrong.push(format!("a message advises first what costs something: {message}"));
        }
    }
}

pub(super) fn deletion(snapshot: &Snapshot, policy: &Policy, plan: &Plan, wrong: &mut Vec<String>) {
    let waits = snapshot.cluster.deleting && snapshot.cluster.finalizer;
    if waits && report(snapshot, policy, plan).message.is_none_or(|text| text.is_empty()) {
        wrong.push("a deletion that waits does not say for what".into());
    }
}
