//! How the restarts of the SearchCluster ended.

use serde_json::Value;

use super::fixture::Fixture;
use crate::support::wait::eventually;

/// One entry for each restart that is over.
pub(super) fn history(fixture: &Fixture) -> Vec<Value> {
    let logs = fixture.json(&["get", "searchcluster", "logs"]);
    logs["status"]["history"].as_array().cloned().unwrap_or_default()
}

/// The outcome of each.
pub(super) fn outcomes(fixture: &Fixture) -> String {
    let path = "jsonpath={.status.history[*].outcome}";
    fixture.run(&["get", "searchcluster", "logs", "--output", path])
}

/// Waits until the last one ended this way, and returns it.
pub(super) fn until_ended(fixture: &Fixture, outcome: &str) -> Value {
    eventually(outcome, || {
        let last = history(fixture).pop()?;
        (last["outcome"] == outcome).then_some(last)
    })
}
