//! What is special about a snapshot: the more of it a choice of snapshots has, the more a plan for
//! each of them proves.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::world::describe_action;
use crate::{Action, MemberStep, Saved, plan};

/// Words that say what is in a snapshot, and what is planned for it.
pub(super) fn of(saved: &Saved) -> BTreeSet<String> {
    let Saved { snapshot, policy, .. } = saved;
    let plan = plan(snapshot, policy);
    let mut all = BTreeSet::new();
    for action in &plan.actions {
        let text = describe_action(action);
        let word = text.split(' ').next().unwrap_or_default();
        all.insert(match action {
            Action::RecordEvent(event) => format!("event {}", event.reason.as_str()),
            _ => format!("do {word}"),
        });
    }
    for wait in &plan.waiting {
        let who = if wait.pod.is_some() { "pod" } else { "cluster" };
        all.insert(format!("wait {who} {}", wait.code.as_str()));
    }
    if let Some(restart) = &snapshot.ledger.restart {
        let strategy = restart.request.strategy.as_str();
        all.insert(format!("{strategy} {:?}", restart.direction));
        if let Some(ending) = &restart.ending {
            all.insert(format!("ending {}", ending.outcome.as_str()));
        }
        for member in restart.members.iter().filter(|one| one.step != MemberStep::Finished) {
            let update = if member.update.is_some() { " with an update" } else { "" };
            all.insert(format!("{strategy} {:?}{update}", member.step));
        }
    }
    // Each field that is not always there.
    let value = serde_json::to_value(saved).unwrap();
    fields(&value["policy"], "policy", &mut all);
    for part in ["cluster", "ledger"] {
        fields(&value["snapshot"][part], part, &mut all);
    }
    for pod in value["snapshot"]["pods"].as_array().unwrap() {
        fields(pod, "pod", &mut all);
    }
    fields(&value["snapshot"]["engine"], "engine", &mut all);
    all
}

/// The paths of all values that are not empty; of words that are one of a few, with the word.
fn fields(value: &Value, path: &str, all: &mut BTreeSet<String>) {
    const FEW: [&str; 6] = ["state", "desired", "color", "mode", "step", "code"];
    match value {
        Value::Null | Value::Bool(false) => {}
        Value::Object(fields_of_it) => {
            for (key, item) in fields_of_it {
                // Not names of nodes and the like.
                let is_name = key.contains(['-', '/', '.']) || key.len() > 24;
                let key = if is_name { "*" } else { key };
                fields(item, &format!("{path}.{key}"), all);
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| fields(item, &format!("{path}[]"), all))
        }
        Value::String(word) if FEW.iter().any(|few| path.ends_with(few)) => {
            all.insert(format!("{path} {word}"));
        }
        _ => {
            all.insert(path.to_owned());
        }
    }
}
