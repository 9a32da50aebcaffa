//! Validates JSON by the part of JSON Schema that our published schemas use.

use serde_json::Value;

/// Keywords that say nothing about the value.
const ANNOTATIONS: [&str; 6] = ["$schema", "$defs", "title", "description", "default", "format"];

/// What is wrong with a value; `root` has the definitions. A field that the schema does not describe is
/// wrong, too: programs are made from the schema.
pub(crate) fn problems(root: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(root, schema, value, "", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let Some(keywords) = schema.as_object() else {
        if schema == false {
            found.push(format!("{at}: nothing is allowed here"));
        }
        return;
    };
    for (keyword, wanted) in keywords {
        match keyword.as_str() {
            "$ref" => {
                let path = wanted.as_str().and_then(|path| path.strip_prefix('#')).unwrap();
                check(root, root.pointer(path).unwrap(), value, at, found);
            }
            "anyOf" | "oneOf" => {
                let all = wanted.as_array().unwrap();
                let fitting =
                    all.iter().filter(|one| problems(root, one, value).is_empty()).count();
                if fitting == 0 || (keyword == "oneOf" && fitting > 1) {
                    found.push(format!("{at}: {fitting} of {keyword} fit: {value}"));
                }
            }
            "const" if value != wanted => found.push(format!("{at}: {value} is not {wanted}")),
            "type" if !has_type(wanted, value) => {
                found.push(format!("{at}: {value} is no {wanted}"))
            }
            "minimum" => {
                if value.as_f64().is_some_and(|value| value < wanted.as_f64().unwrap()) {
                    found.push(format!("{at}: {value} is below {wanted}"));
                }
            }
            "required" => {
                let names = wanted.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
                let missing = names.filter(|name| value.is_object() && value.get(name).is_none());
                found.extend(missing.map(|name| format!("{at}: {name} is missing")));
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, wanted, item, &format!("{at}[{index}]"), found);
                }
            }
            "properties" => {
                for (name, field) in value.as_object().into_iter().flatten() {
                    let of_field = wanted.get(name).or_else(|| schema.get("additionalProperties"));
                    let of_field = of_field.unwrap_or(&Value::Bool(false));
                    check(root, of_field, field, &format!("{at}.{name}"), found);
                }
            }
            "additionalProperties" if schema.get("properties").is_none() => {
                for (name, field) in value.as_object().into_iter().flatten() {
                    check(root, wanted, field, &format!("{at}.{name}"), found);
                }
            }
            "const" | "type" | "additionalProperties" => {}
            other => assert!(ANNOTATIONS.contains(&other), "{at}: {other} is not known here"),
        }
    }
}

fn has_type(wanted: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    };
    match wanted.as_array() {
        Some(names) => names.iter().any(|name| is(name.as_str().unwrap())),
        None => is(wanted.as_str().unwrap()),
    }
}
