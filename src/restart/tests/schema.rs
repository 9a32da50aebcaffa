//! Compares a JSON document with a generated schema: the part of JSON Schema that `schemars` writes.

use serde_json::Value;

/// How the document differs from the schema; empty if it does not. A field that the schema does not
/// have is a fault, too.
pub(super) fn faults(schema: &Value, document: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    compare(schema, schema, document, "", &mut faults);
    faults
}

fn compare(root: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#')).expect("a definition");
        return compare(root, target, value, at, faults);
    }
    for key in ["anyOf", "oneOf"] {
        let Some(variants) = schema[key].as_array() else { continue };
        let of_variant = |variant: &Value| {
            let mut found = Vec::new();
            compare(root, variant, value, at, &mut found);
            found
        };
        let closest = variants.iter().map(of_variant).min_by_key(Vec::len);
        faults.extend(closest.unwrap_or_default());
    }
    let is_allowed = |allowed: &Value| match allowed.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        other => panic!("a type of JSON Schema: {other:?}"),
    };
    let has_type = match &schema["type"] {
        Value::Null => true,
        Value::Array(several) => several.iter().any(is_allowed),
        one => is_allowed(one),
    };
    let is_listed = schema["enum"].as_array().is_none_or(|values| values.contains(value));
    let is_constant = schema.get("const").is_none_or(|constant| constant == value);
    if !has_type || !is_listed || !is_constant {
        faults.push(format!("{at} is {value}"));
        return;
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        compare(root, &schema["items"], item, &format!("{at}/{index}"), faults);
    }
    if let (Some(fields), Some("object")) = (value.as_object(), schema["type"].as_str()) {
        let required = schema["required"].as_array().into_iter().flatten();
        for name in required.filter_map(Value::as_str).filter(|name| !fields.contains_key(*name)) {
            faults.push(format!("{at} has no {name}"));
        }
        for (name, field) in fields {
            let at = format!("{at}/{name}");
            match (schema["properties"].get(name), schema.get("additionalProperties")) {
                (Some(known), _) => compare(root, known, field, &at, faults),
                (None, Some(any @ Value::Object(_))) => compare(root, any, field, &at, faults),
                (None, _) => faults.push(format!("{at} is not in the schema")),
            }
        }
    }
}
