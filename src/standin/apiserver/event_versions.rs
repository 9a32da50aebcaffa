//! Events as `events.k8s.io/v1` shows them, and as `v1`, in which they are stored.

use k8s_openapi::api::{core, events};
use serde_json::{Map, Value, json};

use super::object::through;

/// What a field is called in `events.k8s.io/v1`, and in `v1`.
const NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// From `events.k8s.io/v1` to what is stored.
pub(super) fn to_core(event: Value) -> Result<Value, String> {
    let mut event = through::<events::v1::Event>(event)?;
    rename(&mut event, |(new, core)| (new, core));
    event["apiVersion"] = json!("v1");
    if event["involvedObject"].is_null() {
        event["involvedObject"] = json!({});
    }
    through::<core::v1::Event>(event)
}

/// From what is stored to `events.k8s.io/v1`.
pub(super) fn from_core(event: &Value) -> Value {
    let mut event = event.clone();
    rename(&mut event, |(new, core)| (core, new));
    event["apiVersion"] = json!("events.k8s.io/v1");
    event
}

fn rename(
    event: &mut Value,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) {
    let Some(fields) = event.as_object_mut() else { return };
    let old: Map<String, Value> = std::mem::take(fields);
    for (field, value) in old {
        let renamed = NAMES.into_iter().map(&direction).find(|(from, _)| *from == field);
        fields.insert(renamed.map_or(field, |(_, to)| to.to_owned()), value);
    }
}
