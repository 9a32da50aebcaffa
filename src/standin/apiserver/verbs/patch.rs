//! PATCH: JSON patch, merge patch, and the parts of the two Kubernetes formats that work like a
//! merge.

use serde_json::{Value, json};

use super::{State, Writing, Written};
use crate::apiserver::answer::{Call, Target};
use crate::apiserver::failure::{Cause, Failure};
use crate::apiserver::kinds::Part;

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// A change to an object.
#[derive(Debug)]
pub(crate) enum Patch {
    Json(Vec<Value>),
    Merge(Value),
    /// Server-side apply; `force` takes over fields from other managers.
    Apply {
        document: Value,
        force: bool,
    },
}

impl Patch {
    /// Reads the body by its content type.
    pub(crate) fn parse(call: &Call, target: &Target) -> Result<Self, Failure> {
        let kind = call.content_type.split(';').next().unwrap_or_default().trim();
        let custom = target.resource.schema().is_some();
        let bad = |error: serde_json::Error| {
            Failure::bad_request(format!("error decoding patch: {error}"))
        };
        match kind {
            JSON => Ok(Self::Json(serde_json::from_slice(&call.body).map_err(bad)?)),
            MERGE => Ok(Self::Merge(document(call)?)),
            STRATEGIC if !custom => {
                let document = document(call)?;
                // Lists are merged by keys that each type defines, unless they are replaced.
                if has_lists(&document) {
                    Err(Failure::not_implemented("strategic merge patches with lists"))
                } else {
                    Ok(Self::Merge(document))
                }
            }
            APPLY => {
                if call.parameter("fieldManager").is_none() {
                    let cause = Cause::required("fieldManager", "is required for apply patch");
                    return Err(Failure::invalid_options("PatchOptions", cause));
                }
                let document = document(call)?;
                if document["kind"].is_null() || document["apiVersion"].is_null() {
                    return Err(Failure::bad_request("invalid object type: /, Kind="));
                }
                Ok(Self::Apply { document, force: call.flag("force") })
            }
            _ if custom => Err(Failure::unsupported_media_type(&[JSON, MERGE, APPLY])),
            _ => Err(Failure::unsupported_media_type(&[])),
        }
    }

    fn apply(self, mut object: Value) -> Result<Value, Failure> {
        match self {
            Self::Json(patch) => {
                for operation in patch {
                    operate(&mut object, operation).ok_or_else(Failure::unprocessable)?;
                }
            }
            Self::Merge(document) | Self::Apply { document, .. } => {
                json_patch::merge(&mut object, &document);
            }
        }
        Ok(object)
    }
}

/// One operation of a JSON patch (RFC 6902). Differences as in the real server: `replace` of a
/// missing key adds it, a `test` for null is true if the key is missing, and one of a text that Go
/// escapes is never true.
fn operate(object: &mut Value, mut operation: Value) -> Option<()> {
    let path = operation["path"].as_str()?;
    let (parent, _) = path.rsplit_once('/')?;
    let is_missing = object.pointer(parent)?.is_object() && object.pointer(path).is_none();
    match operation["op"].as_str()? {
        "replace" if is_missing => operation["op"] = json!("add"),
        "test" if is_missing && operation["value"].is_null() => return Some(()),
        "test" if is_escaped(&operation["value"]) => return None,
        _ => {}
    }
    let operation = serde_json::from_value(operation).ok()?;
    json_patch::patch(object, &[operation]).ok()
}

fn is_escaped(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(['<', '>', '&']),
        Value::Array(all) => all.iter().any(is_escaped),
        Value::Object(all) => all.values().any(is_escaped),
        _ => false,
    }
}

fn document(call: &Call) -> Result<Value, Failure> {
    match call.json()? {
        document @ Value::Object(_) => Ok(document),
        _ => Err(Failure::bad_request("error decoding patch: not an object")),
    }
}

fn has_lists(document: &Value) -> bool {
    match document {
        Value::Array(_) => true,
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| name.starts_with('$') || has_lists(value))
        }
        _ => false,
    }
}

impl State {
    /// Changes an object.
    pub(crate) fn patch(
        &mut self,
        target: &Target,
        patch: Patch,
        part: Part,
        writing: Writing,
    ) -> Result<Written, Failure> {
        let current = self.store.get(&target.key()).cloned();
        match (&patch, &current) {
            (Patch::Apply { document, .. }, None) if part == Part::Main => {
                return self.create(target, document.clone(), writing);
            }
            (_, None) => return Err(Failure::not_found(&target.resource, target.name())),
            // Without field managers, the owner of these fields is not known.
            (Patch::Apply { force: false, .. }, Some(_)) => {
                return Err(Failure::not_implemented(
                    "server-side apply to what exists, unless forced",
                ));
            }
            (_, Some(_)) => {}
        }
        let current = current.map(|current| target.resource.encode(&current)).unwrap_or_default();
        self.update(target, patch.apply(current)?, part, writing)
    }
}
