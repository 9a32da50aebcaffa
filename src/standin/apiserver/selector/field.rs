//! The grammar of field selectors, and which fields each kind can be selected by.

use serde_json::Value;

use super::super::catalog::Resource;

/// One condition on one field.
#[derive(Debug, Clone)]
pub(super) struct Field {
    /// The path of the field in the stored object.
    pointer: String,
    value: String,
    equal: bool,
}

/// In addition to `metadata.name` and `metadata.namespace`: storage and field.
const FIELDS: [(&str, &[&str]); 4] = [
    (
        "pods",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
        ],
    ),
    (
        "events",
        &[
            "involvedObject.apiVersion",
            "involvedObject.fieldPath",
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.resourceVersion",
            "involvedObject.uid",
            "reason",
            "reportingComponent",
            "type",
        ],
    ),
    ("secrets", &["type"]),
    ("namespaces", &["status.phase"]),
];

impl Field {
    pub(super) fn matches(&self, object: &Value) -> bool {
        let value = object.pointer(&self.pointer).and_then(Value::as_str).unwrap_or_default();
        (value == self.value) == self.equal
    }
}

/// All conditions, or the message of the server's answer.
pub(super) fn parse(resource: &Resource, text: &str) -> Result<Vec<Field>, String> {
    text.split(',').filter(|part| !part.is_empty()).map(|part| field(resource, part)).collect()
}

fn field(resource: &Resource, part: &str) -> Result<Field, String> {
    let (name, value, equal) = if let Some((name, value)) = part.split_once("!=") {
        (name, value, false)
    } else if let Some((name, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        (name, value, true)
    } else {
        return Err(format!("invalid selector: '{part}'; can't understand '{part}'"));
    };
    // The newer API of events has another name for it.
    let name = match name.split_once('.') {
        Some(("regarding", rest)) if !resource.group.is_empty() => format!("involvedObject.{rest}"),
        _ => name.to_owned(),
    };
    let general = ["metadata.name", "metadata.namespace"];
    let special = FIELDS.iter().filter(|(storage, _)| *storage == resource.storage);
    if !general.iter().chain(special.flat_map(|(_, names)| *names)).any(|known| *known == name) {
        return Err(format!("field label not supported: {name}"));
    }
    Ok(Field { pointer: format!("/{}", name.replace('.', "/")), value: value.to_owned(), equal })
}
