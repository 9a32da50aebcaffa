//! Values as YAML and JSON text.

use serde_json::Value;

/// A value in one line, for a flow collection and for JSON.
pub(crate) fn flow(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| format!("{}: {}", Value::String(key.clone()), flow(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// `key: value`, whose first line begins at `column`.
pub(crate) fn block_entry(key: &str, value: &Value, column: usize) -> String {
    let key = scalar(&Value::String(key.to_owned()));
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let inner = column + 2;
            format!("{key}:\n{}{}", " ".repeat(inner), entries(value, inner))
        }
        Value::Array(items) if !items.is_empty() => {
            let inner = column + 2;
            let lines = items.iter().map(|item| " ".repeat(inner) + &block_item(item, inner));
            format!("{key}:\n{}", lines.collect::<Vec<_>>().join("\n"))
        }
        _ => format!("{key}: {}", scalar(value)),
    }
}

/// `- value`, whose first line begins at `column`.
pub(crate) fn block_item(value: &Value, column: usize) -> String {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            format!("- {}", entries(value, column + 2))
        }
        Value::Array(items) if !items.is_empty() => format!("- {}", flow(value)),
        _ => format!("- {}", scalar(value)),
    }
}

/// The entries of a mapping; `name` first, as people write it.
fn entries(value: &Value, column: usize) -> String {
    let fields = value.as_object().into_iter().flatten();
    let mut fields: Vec<(&String, &Value)> = fields.collect();
    fields.sort_by_key(|(key, _)| *key != "name");
    let lines = fields.into_iter().map(|(key, value)| block_entry(key, value, column));
    lines.collect::<Vec<_>>().join(&format!("\n{}", " ".repeat(column)))
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::String(text) if !text.contains(['\'', '\n', '\r', '\t']) && text.contains('"') => {
            format!("'{text}'")
        }
        _ => flow(value),
    }
}

/// True if a text needs no quotes and no reader takes it for another type.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 10] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "inf"];
    let first = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        || text.starts_with("./");
    let all = text.chars().all(|one| one.is_ascii_alphanumeric() || "/._-:=@ ".contains(one));
    first
        && all
        && !text.contains(": ")
        && !text.ends_with([':', ' '])
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}
