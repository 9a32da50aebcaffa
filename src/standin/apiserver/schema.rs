//! Structural schemas of custom resources: unknown fields are dropped, defaults are filled in, and
//! the rest is checked. Not checked: `format` and CEL rules (`x-kubernetes-validations`).

use serde_json::{Value, json};

use super::failure::Cause;

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

/// Everything that is wrong with the object, in the order of its schema.
pub(crate) fn validate(schema: &Value, object: &Value, causes: &mut Vec<Cause>) {
    check(schema, object, "", causes);
}

fn check(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    if value.is_null() && schema["nullable"] == json!(true) {
        return;
    }
    if let Some(expected) = mismatch(schema, value) {
        let shown = json!(type_of(value));
        let note = format!("{path} in body must be of type {expected}: {shown}");
        return causes.push(Cause::wrong_type(path, &shown, &note));
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        causes.push(Cause::unsupported(path, value, allowed));
    }
    match value {
        Value::Number(number) => check_number(schema, value, number.as_f64(), path, causes),
        Value::String(text) => check_text(schema, text, path, causes),
        Value::Array(items) => check_items(schema, items, path, causes),
        Value::Object(_) => check_fields(schema, value, path, causes),
        Value::Null | Value::Bool(_) => {}
    }
    check_choices(schema, value, path, causes);
}

/// The expected type, if the value has another.
fn mismatch<'a>(schema: &'a Value, value: &Value) -> Option<&'a str> {
    if schema["x-kubernetes-int-or-string"] == json!(true) {
        let fits = value.is_i64() || value.is_u64() || value.is_string();
        return (!fits).then_some("integer,string");
    }
    let expected = schema["type"].as_str()?;
    let fits = match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        _ => true,
    };
    (!fits).then_some(expected)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_number(
    schema: &Value,
    value: &Value,
    number: Option<f64>,
    path: &str,
    causes: &mut Vec<Cause>,
) {
    let Some(number) = number else { return };
    if let Some(least) = schema["minimum"].as_f64() {
        let exclusive = schema["exclusiveMinimum"] == json!(true);
        if number < least || exclusive && number == least {
            let than = if exclusive { "greater than" } else { "greater than or equal to" };
            let note = format!("{path} in body should be {than} {least}");
            causes.push(Cause::invalid(path, value, &note));
        }
    }
    if let Some(most) = schema["maximum"].as_f64() {
        let exclusive = schema["exclusiveMaximum"] == json!(true);
        if number > most || exclusive && number == most {
            let than = if exclusive { "less than" } else { "less than or equal to" };
            let note = format!("{path} in body should be {than} {most}");
            causes.push(Cause::invalid(path, value, &note));
        }
    }
}

fn check_text(schema: &Value, text: &str, path: &str, causes: &mut Vec<Cause>) {
    let length = text.chars().count() as u64;
    if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
        let note = format!("{path} in body should be at least {least} chars long");
        causes.push(Cause::invalid(path, &json!(text), &note));
    }
    // The syntax of Go's expressions is like Rust's. An expression that cannot be read is ignored.
    let pattern = schema["pattern"].as_str();
    let expression = pattern.and_then(|pattern| regex::Regex::new(pattern).ok());
    if let Some(expression) = expression.filter(|expression| !expression.is_match(text)) {
        let note = format!("{path} in body should match '{expression}'");
        causes.push(Cause::invalid(path, &json!(text), &note));
    }
    if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
        let note = format!("Too long: may not be more than {most} bytes");
        causes.push(Cause::too_many(path, "FieldValueTooLong", note));
    }
}

fn check_items(schema: &Value, items: &[Value], path: &str, causes: &mut Vec<Cause>) {
    let count = items.len() as u64;
    if let Some(least) = schema["minItems"].as_u64().filter(|least| count < *least) {
        let note = format!("{path} in body should have at least {least} items");
        causes.push(Cause::invalid(path, &json!(count), &note));
    }
    if let Some(most) = schema["maxItems"].as_u64().filter(|most| count > *most) {
        let note = format!("Too many: {count}: must have at most {most} items");
        causes.push(Cause::too_many(path, "FieldValueTooMany", note));
    }
    check_unique(schema, items, path, causes);
    for (index, item) in items.iter().enumerate() {
        check(&schema["items"], item, &format!("{path}[{index}]"), causes);
    }
}

/// No element twice in a `set`, no key twice in a `map`.
fn check_unique(schema: &Value, items: &[Value], path: &str, causes: &mut Vec<Cause>) {
    let keys = schema["x-kubernetes-list-map-keys"].as_array();
    let identity = |item: &Value| match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => Some(item.clone()),
        Some("map") => {
            let names = keys.into_iter().flatten().filter_map(Value::as_str);
            Some(names.map(|name| (name.to_owned(), item[name].clone())).collect())
        }
        _ => None,
    };
    for (index, item) in items.iter().enumerate() {
        let same = |earlier: &Value| identity(earlier) == identity(item);
        if let Some(found) = identity(item).filter(|_| items[..index].iter().any(same)) {
            causes.push(Cause::duplicate(format!("{path}[{index}]"), &found));
        }
    }
}

fn check_fields(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(fields) = value.as_object() else { return };
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            causes.push(Cause::required(below(name), ""));
        }
    }
    let count = fields.len() as u64;
    if let Some(most) = schema["maxProperties"].as_u64().filter(|most| count > *most) {
        let note = format!("Too many: {count}: must have at most {most} items");
        causes.push(Cause::too_many(path, "FieldValueTooMany", note));
    }
    for (name, value) in fields {
        let schema = match schema["properties"].get(name) {
            Some(schema) => schema,
            None => &schema["additionalProperties"],
        };
        if schema.is_object() {
            check(schema, value, &below(name), causes);
        }
    }
}

/// `allOf`, `anyOf`, `oneOf`, `not`.
fn check_choices(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let fits = |schema: &Value| {
        let mut causes = Vec::new();
        check(schema, value, path, &mut causes);
        causes.is_empty()
    };
    for schema in schema["allOf"].as_array().into_iter().flatten() {
        check(schema, value, path, causes);
    }
    let wrong = |word: &str| {
        let note = format!("{path} in body must validate {word}");
        Cause::invalid(path, value, &note)
    };
    if schema["anyOf"].as_array().is_some_and(|any| !any.iter().any(fits)) {
        causes.push(wrong("at least one schema (anyOf)"));
    }
    if schema["oneOf"].as_array().is_some_and(|one| one.iter().filter(|s| fits(s)).count() != 1) {
        causes.push(wrong("one and only one schema (oneOf)"));
    }
    if schema.get("not").is_some_and(fits) {
        causes.push(wrong("not to match the schema (not)"));
    }
}
