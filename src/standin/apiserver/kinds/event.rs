//! Events: one store, two APIs. Stored as `v1`, also shown and accepted as `events.k8s.io/v1`.

use k8s_openapi::api::{core, events};
use serde_json::{Map, Value, json};

use super::super::catalog::Resource;
use super::super::catalog::builtin::through;
use super::super::cause::Cause;
use super::super::object::meta;

/// The names of a field in `events.k8s.io/v1`, and in `v1`.
const NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// From `events.k8s.io/v1` to the stored form.
pub(in super::super) fn to_core(event: Value) -> Result<Value, String> {
    let mut event = through::<events::v1::Event>(event)?;
    rename(&mut event, |(new, core)| (new, core));
    event["apiVersion"] = json!("v1");
    if event["involvedObject"].is_null() {
        event["involvedObject"] = json!({});
    }
    through::<core::v1::Event>(event)
}

/// From the stored form to `events.k8s.io/v1`.
pub(in super::super) fn from_core(event: &Value) -> Value {
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

/// The newer API requires fields that are optional in the older one.
pub(super) fn validate(resource: &Resource, event: &Value, causes: &mut Vec<Cause>) {
    let about = event["involvedObject"]["namespace"].as_str().unwrap_or_default();
    let own = meta(event, "namespace");
    let fits = match about {
        // Events about objects without a namespace are stored in these.
        "" => ["default", "kube-system"].contains(&own),
        about => !resource.group.is_empty() || about == own,
    };
    if !fits {
        let note = "does not match event.namespace";
        causes.push(Cause::invalid("involvedObject.namespace", &json!(about), note));
    }
    if resource.group.is_empty() {
        return;
    }
    for field in ["eventTime", "reportingComponent", "reportingInstance", "action", "reason"] {
        if event[field].as_str().unwrap_or_default().is_empty() {
            let shown = if field == "reportingComponent" { "reportingController" } else { field };
            causes.push(Cause::required(shown, ""));
        }
    }
    let kind = event["type"].as_str().unwrap_or_default();
    if !["Normal", "Warning"].contains(&kind) {
        causes.push(Cause::invalid("type", &json!(kind), "has invalid value: "));
    }
}
