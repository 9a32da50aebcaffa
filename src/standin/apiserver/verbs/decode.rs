//! From the body of a request to an object of the kind that the path names.

use serde_json::{Value, json};

use super::super::catalog::Resource;
use super::super::cause::Cause;
use super::super::failure::Failure;
use super::super::object::meta;
use super::super::object::through;
use super::super::schema;
use super::State;

impl State {
    /// The object in the stored form: of this kind, without unknown fields.
    pub(super) fn decode(
        resource: &Resource,
        mut object: Value,
        strict: bool,
    ) -> Result<Value, Failure> {
        check_kind(resource, &object)?;
        object["kind"] = json!(resource.kind);
        object["apiVersion"] = json!(resource.api_version());
        let unfit = |error: String| {
            let (kind, version) = (&resource.kind, &resource.version);
            let message =
                format!("{kind} in version {version:?} cannot be handled as a {kind}: {error}");
            Failure::bad_request(message)
        };
        let given = strict.then(|| object.clone());
        let mut unknown = Vec::new();
        if let Some(schema) = resource.schema() {
            let metadata = object["metadata"].take();
            object["metadata"] = through::<Metadata>(metadata).map_err(unfit)?;
            if let Some(mut given) = given {
                unknown = schema::prune(schema, &mut given);
            }
        } else {
            object = resource.decode(object).map_err(unfit)?;
            // For events, fields change their names here.
            if let Some(given) = given.filter(|_| resource.storage != "events") {
                lost(&given, &object, "", &mut unknown);
            }
        }
        match unknown.as_slice() {
            [] => Ok(object),
            unknown => {
                let each: Vec<String> =
                    unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
                Err(unfit(format!("strict decoding error: {}", each.join(", "))))
            }
        }
    }
}

type Metadata = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

fn check_kind(resource: &Resource, object: &Value) -> Result<(), Failure> {
    let custom = resource.schema().is_some();
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if !object.is_object() || custom && kind.is_empty() {
        let message = format!(
            "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing",
            resource.kind
        );
        return Err(Failure::bad_request(message));
    }
    let expected = resource.api_version();
    if !version.is_empty() && version != expected {
        let message = format!(
            "the API version in the data ({version}) does not match the expected API version \
             ({expected})"
        );
        return Err(Failure::bad_request(message));
    }
    if custom && kind != resource.kind {
        let note = format!("must be {}", resource.kind);
        let cause = Cause::invalid("kind", &json!(kind), &note);
        return Err(Failure::invalid_kind(&resource.group, kind, meta(object, "name"), &[cause]));
    }
    if !kind.is_empty() && kind != resource.kind {
        let message = format!(
            "{kind} in version {expected:?} cannot be handled as a {}: converting (v1.{kind}) to \
             (core.{}): unknown conversion",
            resource.kind, resource.kind
        );
        return Err(Failure::bad_request(message));
    }
    Ok(())
}

/// The fields of `given` that are not in `kept`.
fn lost(given: &Value, kept: &Value, path: &str, unknown: &mut Vec<String>) {
    match given {
        Value::Object(fields) => {
            for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match kept.get(name) {
                    Some(kept) => lost(value, kept, &path, unknown),
                    None => unknown.push(path),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                lost(item, &kept[index], &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}
