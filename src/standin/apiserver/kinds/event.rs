//! Events: one store, two APIs. Stored as `v1`, also shown and accepted as `events.k8s.io/v1`.

use serde_json::{Value, json};

use super::super::catalog::Resource;
use super::super::cause::Cause;
use super::super::object::meta;

/// The newer API requires what the older one leaves open.
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
