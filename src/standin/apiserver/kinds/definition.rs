//! CustomResourceDefinitions: accepted at once, where the real server takes a moment.

use serde_json::{Value, json};

use super::super::cause::Cause;
use super::super::object::{meta, timestamp};

/// Fills in names, and sets the conditions that the kind is served.
pub(super) fn complete(definition: &mut Value) {
    let spec = &mut definition["spec"];
    let kind = spec["names"]["kind"].as_str().unwrap_or_default().to_owned();
    if spec["names"]["singular"].is_null() {
        spec["names"]["singular"] = json!(kind.to_lowercase());
    }
    if spec["names"]["listKind"].is_null() {
        spec["names"]["listKind"] = json!(format!("{kind}List"));
    }
    if spec["conversion"].is_null() {
        spec["conversion"] = json!({"strategy": "None"});
    }
    let stored: Vec<Value> = versions(spec)
        .iter()
        .filter(|version| version["storage"] == json!(true))
        .map(|version| version["name"].clone())
        .collect();
    let names = spec["names"].clone();
    let now = timestamp(std::time::Duration::ZERO);
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": now,
        })
    };
    definition["status"] = json!({
        "acceptedNames": names,
        "storedVersions": stored,
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
    });
}

pub(super) fn validate(definition: &Value, causes: &mut Vec<Cause>) {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let expected = format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"]));
    let name = meta(definition, "name");
    if name != expected {
        let note = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", &json!(name), note));
    }
    let versions = versions(spec);
    if versions.iter().filter(|version| version["storage"] == json!(true)).count() != 1 {
        let note = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", &json!(versions), note));
    }
    for (index, version) in versions.iter().enumerate() {
        if !version["schema"]["openAPIV3Schema"].is_object() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            causes.push(Cause::required(field, "schemas are required"));
        }
    }
}

fn versions(spec: &Value) -> Vec<Value> {
    spec["versions"].as_array().cloned().unwrap_or_default()
}
