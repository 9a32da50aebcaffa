//! An engine's settings, in whichever of the two ways its file writes them.

use std::collections::BTreeMap;

use serde_json::Value;

/// Settings by their full names: `cluster.name`. A list has its elements with commas between them.
pub type Settings = BTreeMap<String, String>;

/// An engine and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineVersion {
    /// Elasticsearch, major and minor version.
    Elasticsearch(u32, u32),
    /// OpenSearch, major and minor version.
    OpenSearch(u32, u32),
}

/// The settings of a file that was read as YAML, nested or flat or both. A setting without a value
/// is left out.
pub fn settings(file: &Value) -> Settings {
    let mut found = Settings::new();
    descend("", file, &mut found);
    found
}

fn descend(prefix: &str, value: &Value, found: &mut Settings) {
    let text = match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if prefix.is_empty() { "" } else { "." };
                descend(&format!("{prefix}{dot}{name}"), value, found);
            }
            return;
        }
        Value::Array(list) => list.iter().filter_map(text).collect::<Vec<_>>().join(","),
        Value::Null => return,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => text(value).unwrap_or_default(),
    };
    found.insert(prefix.to_owned(), text);
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Some(value.to_string())
        }
    }
}
