//! What the real server does with objects by their kind: defaults, which fields a write may change,
//! which values are invalid.

use serde_json::{Value, json};

use super::catalog::{Nature, Resource};
use super::cause::Cause;
use super::object::{
    finalizers, is_deleting, is_label_value, is_name, is_qualified, keep, meta, meta_mut,
};
use super::schema;

mod definition;
pub(super) mod event;
mod pod;

/// Which part of the object a write is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Main,
    Status,
    /// CPU and memory of a pod.
    Resize,
}

/// Fields of the metadata that only the server writes.
const SERVER_SIDE: [&str; 6] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "namespace",
    "uid",
];

/// Makes a new object complete.
pub(super) fn prepare_create(resource: &Resource, object: &mut Value) {
    if resource.has_generation() {
        object["metadata"]["generation"] = json!(1);
    }
    if resource.status && resource.storage != "nodes" {
        object.as_object_mut().map(|object| object.remove("status"));
    }
    match resource.storage.as_str() {
        "pods" => pod::complete(object),
        "secrets" => complete_secret(object),
        "namespaces" => {
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            object["status"] = json!({"phase": "Active"});
            let name = meta(object, "name").to_owned();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
        }
        "statefulsets" => object["status"] = json!({"availableReplicas": 0, "replicas": 0}),
        "customresourcedefinitions" => definition::complete(object),
        _ => {}
    }
    fill_in(resource, object);
}

/// Keeps of `new` only what a write of `part` may change.
pub(super) fn prepare_update(resource: &Resource, old: &Value, new: &mut Value, part: Part) {
    let custom = matches!(resource.nature, Nature::Custom(_));
    match part {
        Part::Main if resource.status => keep(new, old, "status"),
        Part::Main => {}
        // A write of the status of a custom resource changes only the status; a write of the status
        // of another kind changes everything except the spec.
        Part::Status if custom => {
            let status = new.get("status").cloned();
            let version = new["metadata"]["resourceVersion"].clone();
            *new = old.clone();
            new["metadata"]["resourceVersion"] = version;
            match (status, new.as_object_mut()) {
                (Some(status), _) => new["status"] = status,
                (None, Some(new)) => drop(new.remove("status")),
                (None, None) => {}
            }
        }
        Part::Status => keep(new, old, "spec"),
        Part::Resize => *new = pod::resized(old, new),
    }
    meta_mut(new);
    for field in SERVER_SIDE {
        let old = &old["metadata"];
        keep(&mut new["metadata"], old, field);
    }
    if resource.storage == "secrets" {
        complete_secret(new);
    }
    fill_in(resource, new);
    if resource.has_generation()
        && part != Part::Status
        && wanted(resource, old) != wanted(resource, new)
    {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        new["metadata"]["generation"] = json!(generation);
    }
}

/// What is wrong with an object that is about to be stored.
pub(super) fn validate(resource: &Resource, old: Option<&Value>, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = meta(new, "name");
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else if !is_name(name) {
        let note = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                    characters, '-' or '.', and must start and end with an alphanumeric character";
        causes.push(Cause::invalid("metadata.name", &json!(name), note));
    }
    validate_keys(new, &mut causes);
    if let Some(old) = old.filter(|old| is_deleting(old)) {
        let before = finalizers(old);
        let added: Vec<&str> =
            finalizers(new).into_iter().filter(|name| !before.contains(name)).collect();
        if !added.is_empty() {
            let note = format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{added:?}"
            );
            causes.push(Cause::forbidden("metadata.finalizers", &note));
        }
    }
    match resource.storage.as_str() {
        "pods" => pod::validate(old, new, &mut causes),
        "events" => event::validate(resource, new, &mut causes),
        "customresourcedefinitions" => definition::validate(new, &mut causes),
        "configmaps" | "secrets" => validate_immutable(old, new, &mut causes),
        _ => {}
    }
    if let Some(schema) = resource.schema() {
        schema::validate(schema, new, &mut causes);
    }
    causes
}

fn validate_keys(object: &Value, causes: &mut Vec<Cause>) {
    for field in ["labels", "annotations"] {
        let path = format!("metadata.{field}");
        for (key, value) in object["metadata"][field].as_object().into_iter().flatten() {
            // Keys of annotations may have capitals in their domain.
            let checked = if field == "labels" { key.clone() } else { key.to_lowercase() };
            if !is_qualified(&checked) {
                let note = "name part must consist of alphanumeric characters, '-', '_' or '.', \
                            and must start and end with an alphanumeric character";
                causes.push(Cause::invalid(&path, &json!(key), note));
            }
            if field == "labels" && !is_label_value(value.as_str().unwrap_or_default()) {
                let note = "a valid label must be an empty string or consist of alphanumeric \
                            characters, '-', '_' or '.', and must start and end with an \
                            alphanumeric character";
                causes.push(Cause::invalid(&path, value, note));
            }
        }
    }
}

/// Drops fields that are empty and that the real server does not store.
fn tidy(resource: &Resource, object: &mut Value) {
    let is_empty = |value: &Value| match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        value => value.is_null(),
    };
    meta_mut(object).retain(|_, value| !is_empty(value));
    if let (None, Some(object)) = (resource.schema(), object.as_object_mut()) {
        let data = ["data", "binaryData"];
        object.retain(|field, value| !data.contains(&field.as_str()) || !is_empty(value));
    }
}

/// Drops fields that are not in the schema, and fills in defaults.
fn fill_in(resource: &Resource, object: &mut Value) {
    tidy(resource, object);
    if let Some(schema) = resource.schema() {
        schema::prune(schema, object);
        schema::fill_in(schema, object);
    }
}

/// The part whose changes `generation` counts.
fn wanted(resource: &Resource, object: &Value) -> Value {
    let mut wanted = object.clone();
    if let Some(wanted) = wanted.as_object_mut() {
        wanted.remove("metadata");
        if resource.status {
            wanted.remove("status");
        }
    }
    wanted
}

/// `stringData` is only a way to write `data`, and is never returned.
fn complete_secret(object: &mut Value) {
    let Some(secret) = object.as_object_mut() else { return };
    if let Some(Value::Object(texts)) = secret.remove("stringData") {
        for (name, text) in texts {
            let bytes = text.as_str().unwrap_or_default().as_bytes().to_vec();
            secret.entry("data").or_insert_with(|| json!({}))[name] =
                json!(k8s_openapi::ByteString(bytes));
        }
    }
    secret.entry("type").or_insert_with(|| json!("Opaque"));
}

fn validate_immutable(old: Option<&Value>, new: &Value, causes: &mut Vec<Cause>) {
    let Some(old) = old.filter(|old| old["immutable"] == json!(true)) else { return };
    for field in ["data", "binaryData", "immutable"] {
        if old.get(field) != new.get(field) {
            causes.push(Cause::forbidden(field, "field is immutable when `immutable` is set"));
        }
    }
}
