//! CPU and memory of a living container: their values after a change of its template, and whether
//! the kubelet has put them into effect.

use serde_json::{Map, Value};

use crate::quantity::thousandths;

/// Resources that a living container can be resized in.
const RESIZED: [&str; 2] = ["cpu", "memory"];
const KINDS: [&str; 2] = ["limits", "requests"];

/// `resources` of a living container after a change of its template `from` → `to`: only amounts
/// that the template changes are changed.
pub fn resized(live: &Value, from: &Value, to: &Value) -> Value {
    let (from, to) = (with_requests(from), with_requests(to));
    let mut resized = live.clone();
    for kind in KINDS {
        for name in RESIZED {
            let amount = |resources: &Value| resources[kind].get(name).cloned();
            if let (before, Some(after)) = (amount(&from), amount(&to))
                && !same_amount(before.as_ref(), Some(&after))
                && !same_amount(live[kind].get(name), Some(&after))
            {
                set(&mut resized, kind, name, after);
            }
        }
    }
    resized
}

/// True if CPU and memory are in effect as the pod's spec has them, by the kubelet's report.
pub fn in_effect(spec: &Value, reported: &Value) -> bool {
    let each = KINDS.iter().flat_map(|kind| RESIZED.map(|name| (*kind, name)));
    each.into_iter().all(|(kind, name)| {
        let wanted = spec[kind].get(name);
        wanted.is_none() || same_amount(wanted, reported[kind].get(name))
    })
}

/// Adds missing requests: a request that is not given is the limit, as the apiserver makes pods.
fn with_requests(resources: &Value) -> Value {
    let mut whole = resources.clone();
    for name in RESIZED {
        let limit = resources["limits"].get(name).cloned();
        if let (Some(limit), None) = (limit, resources["requests"].get(name)) {
            set(&mut whole, "requests", name, limit);
        }
    }
    whole
}

fn set(resources: &mut Value, kind: &str, name: &str, amount: Value) {
    if !resources.is_object() {
        *resources = Value::Object(Map::new());
    }
    if !resources[kind].is_object() {
        resources[kind] = Value::Object(Map::new());
    }
    resources[kind][name] = amount;
}

fn same_amount(one: Option<&Value>, other: Option<&Value>) -> bool {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let amount = |value: Option<&Value>| thousandths(&text(value?)?);
    match (amount(one), amount(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one.is_none() && other.is_none(),
    }
}
