//! Structural schemas of custom resources: unknown fields are dropped, defaults are filled in, and
//! the rest is checked.

use serde_json::Value;

mod validate;

pub(super) use validate::validate;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
/// Fields of every object, whatever its schema is.
const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Drops the fields that are not in the schema, and returns their paths.
pub(super) fn prune(schema: &Value, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    let Some(fields) = object.as_object_mut() else { return unknown };
    let kept: Vec<(String, Value)> =
        OF_EVERY_OBJECT.into_iter().filter_map(|name| fields.remove_entry(name)).collect();
    prune_value(schema, object, "", &mut unknown);
    if let Some(fields) = object.as_object_mut() {
        fields.extend(kept);
    }
    unknown
}

fn prune_value(schema: &Value, value: &mut Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                prune_value(&schema["items"], item, &format!("{path}[{index}]"), unknown);
            }
        }
        Value::Object(fields) => {
            let below = |name: &str| match path {
                "" => name.to_owned(),
                path => format!("{path}.{name}"),
            };
            let open = schema[PRESERVE] == Value::Bool(true);
            let others = &schema["additionalProperties"];
            fields.retain(|name, value| match schema["properties"].get(name) {
                Some(schema) => {
                    prune_value(schema, value, &below(name), unknown);
                    true
                }
                None if others.is_object() => {
                    prune_value(others, value, &below(name), unknown);
                    true
                }
                None if open || others == &Value::Bool(true) => true,
                None => {
                    unknown.push(below(name));
                    false
                }
            });
        }
        _ => {}
    }
}

/// Fills in defaults. A null where none is allowed counts as absent.
pub(super) fn fill_in(schema: &Value, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(&schema["items"], item)),
        Value::Object(fields) => {
            let known = schema["properties"].as_object();
            for (name, schema) in known.into_iter().flatten() {
                if fields.get(name).is_some_and(Value::is_null)
                    && schema["nullable"] != Value::Bool(true)
                {
                    fields.remove(name);
                }
                if let Some(default) = schema.get("default")
                    && !fields.contains_key(name)
                {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                match schema["properties"].get(name) {
                    Some(schema) => fill_in(schema, value),
                    None => fill_in(&schema["additionalProperties"], value),
                }
            }
        }
        _ => {}
    }
}
