//! How the restarts of the SearchCluster ended, and what one under way waits for.

use serde_json::{Value, json};

use super::fixture::Fixture;
use crate::support::wait::eventually_or;

/// One entry for each restart that is over.
pub(super) fn history(fixture: &Fixture) -> Vec<Value> {
    let logs = fixture.logs();
    logs["status"]["history"].as_array().cloned().unwrap_or_default()
}

/// The outcome of each.
pub(super) fn outcomes(fixture: &Fixture) -> String {
    let path = "jsonpath={.status.history[*].outcome}";
    fixture.run(&["get", "searchcluster", "logs", "--output", path])
}

/// Waits until the last one ended this way, and returns it.
pub(super) fn until_ended(fixture: &Fixture, outcome: &str) -> Value {
    let last = || history(fixture).pop().filter(|last| last["outcome"] == outcome);
    eventually_or(outcome, last, || waits(fixture))
}

/// What each node waits for, and the conditions, for a wait that failed.
pub(super) fn waits(fixture: &Fixture) -> String {
    let status = &fixture.logs()["status"];
    format!(": {:#}", json!({ "nodes": status["nodes"], "conditions": status["conditions"] }))
}

/// Waits until more restarts are over than `known`, and returns the last one.
pub(super) fn until_another_ended(fixture: &Fixture, known: usize) -> Value {
    let last = || {
        let mut history = history(fixture);
        (history.len() > known).then(|| history.pop())?
    };
    eventually_or("the restart is over", last, || waits(fixture))
}
