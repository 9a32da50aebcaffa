//! `filter_path`: selects parts of an answer.

use serde_json::{Map, Value};

/// The parts of `body` that one of the comma-separated patterns selects. `*` stands for any part of
/// a name, `**` for any names; a `-` in front excludes.
pub(super) fn filtered(body: &Value, patterns: &str) -> Value {
    let (unwanted, wanted): (Vec<&str>, Vec<&str>) =
        patterns.split(',').filter(|it| !it.is_empty()).partition(|it| it.starts_with('-'));
    let split = |pattern: &&'_ str| -> Vec<String> {
        pattern.trim_start_matches('-').split('.').map(str::to_owned).collect()
    };
    let wanted: Vec<_> = wanted.iter().map(split).collect();
    let unwanted: Vec<_> = unwanted.iter().map(split).collect();
    let kept = if wanted.is_empty() { Some(body.clone()) } else { only(body, &wanted) };
    kept.and_then(|body| without(body, &unwanted)).unwrap_or_else(|| Value::Object(Map::new()))
}

/// The rest of each pattern below `name`.
fn below(patterns: &[Vec<String>], name: &str) -> Vec<Vec<String>> {
    let mut rest = Vec::new();
    for pattern in patterns {
        match pattern.split_first() {
            Some((first, tail)) if first == "**" => {
                rest.push(pattern.clone());
                rest.extend(below(&[tail.to_vec()], name));
            }
            Some((first, tail)) if matches(first, name) => rest.push(tail.to_vec()),
            _ => {}
        }
    }
    rest
}

fn only(value: &Value, patterns: &[Vec<String>]) -> Option<Value> {
    if patterns.iter().any(Vec::is_empty) {
        return Some(value.clone());
    }
    match value {
        Value::Object(fields) => {
            let kept: Map<String, Value> = fields
                .iter()
                .filter_map(|(name, field)| {
                    let rest = below(patterns, name);
                    Some((name.clone(), only(field, &rest).filter(|_| !rest.is_empty())?))
                })
                .collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => {
            let kept: Vec<Value> = items.iter().filter_map(|item| only(item, patterns)).collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        _ => None,
    }
}

fn without(value: Value, patterns: &[Vec<String>]) -> Option<Value> {
    if patterns.iter().any(Vec::is_empty) {
        return None;
    }
    Some(match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter_map(|(name, field)| {
                let rest = below(patterns, &name);
                Some((name, without(field, &rest)?))
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => {
            Value::Array(items.into_iter().filter_map(|item| without(item, patterns)).collect())
        }
        leaf => leaf,
    })
}

/// Whether `name` matches `pattern`, in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len())
                .filter(|at| rest.is_char_boundary(*at))
                .any(|at| matches(after, &rest[at..]))
        }),
    }
}
