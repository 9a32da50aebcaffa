//! Additions to the lists of a pod.

use serde_json::Value;

use crate::edit::{Change, Path, Step};
use crate::finding::ObjectIssue;
use crate::paths::plain;

/// The manager's port.
pub(super) const PORT: u16 = 9199;

/// Additions to a list. An item with the same `field` stays as it is.
pub(crate) fn missing_items(
    at: &Path,
    field: &str,
    there: &Value,
    wanted: Vec<Value>,
) -> Vec<Change> {
    let new = wanted.into_iter().filter(|item| find(there, field, &item[field]).is_none());
    new.map(|item| {
        let name = item[field].as_str().unwrap_or_default();
        Change::Put { at: at.clone(), child: Step::item(field, name), value: item }
    })
    .collect()
}

/// Additions to a list of items that are needed exactly as given: another item in their place is
/// an error.
pub(crate) fn exact_items(
    at: &Path,
    list: &str,
    around: &Value,
    wanted: Vec<Value>,
    found: &mut Vec<ObjectIssue>,
) -> Vec<Change> {
    let field = if list == "volumeMounts" { "mountPath" } else { "name" };
    let (at, there) = (at.then(Step::key(list)), &around[list]);
    for item in &wanted {
        let name = item[field].as_str().unwrap_or_default();
        if find(there, field, &item[field]).is_some_and(|other| !has_fields(other, item)) {
            found.push(ObjectIssue::error(
                at.then(Step::item(field, name)),
                "it is there already, and is not what the manager needs",
                "Give it another name, or take it out",
            ));
        }
    }
    missing_items(&at, field, there, wanted)
}

/// Errors for claims with the name of a volume that the manager needs: the claim would take its place.
pub(crate) fn claimed(claims: &Value, wanted: &[Value]) -> Vec<ObjectIssue> {
    let claims = claims.as_array().into_iter().flatten();
    let names = claims.map(|claim| &claim["metadata"]["name"]);
    let taken = names.filter(|name| wanted.iter().any(|volume| volume["name"] == **name));
    taken
        .map(|name| {
            let name = name.as_str().unwrap_or_default();
            ObjectIssue::error(
                format!("spec.volumeClaimTemplates[name={name}]"),
                "the claim would take the place of a volume that the manager needs, and its state belongs to one pod",
                "Give the claim another name, or leave it out",
            )
        })
        .collect()
}

/// The error for another port of the container that has the manager's number.
pub(crate) fn port_clash(at: &Path, container: &Value) -> Option<ObjectIssue> {
    let mut ports = container["ports"].as_array()?.iter();
    let is_other = |port: &&Value| port["containerPort"] == PORT && port["name"] != "stayput";
    ports.find(is_other).map(|_| {
        ObjectIssue::error(
            at.then(Step::key("ports")),
            format!(
                "the manager listens on port {PORT}, and another port of the container is that"
            ),
            "Let the engine listen on another port",
        )
    })
}

fn find<'a>(list: &'a Value, field: &str, name: &Value) -> Option<&'a Value> {
    list.as_array()?.iter().find(|item| field_says(field, &item[field], name))
}

/// True if a field has at least the wanted value. A path can be written in several ways.
fn field_says(field: &str, there: &Value, wanted: &Value) -> bool {
    match (field, there.as_str(), wanted.as_str()) {
        ("mountPath", Some(there), Some(wanted)) => plain(there) == plain(wanted),
        _ => has_fields(there, wanted),
    }
}

/// True if a value has all wanted fields. Fields that Kubernetes has added by itself do no harm.
fn has_fields(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| {
            there.get(key).is_some_and(|there| field_says(key, there, wanted))
        }),
        (Value::Array(there), Value::Array(wanted)) => {
            there.len() == wanted.len()
                && there.iter().zip(wanted).all(|(there, wanted)| has_fields(there, wanted))
        }
        _ => there == wanted,
    }
}
