//! Merges a person's pod template over that of stayput.

use serde_json::Value;

/// Lists whose elements are found by this field, as Kubernetes itself merges them. All others are
/// taken as they are written.
const KEYS: [(&str, &str); 7] = [
    ("containers", "name"),
    ("initContainers", "name"),
    ("volumes", "name"),
    ("env", "name"),
    ("volumeMounts", "mountPath"),
    ("ports", "containerPort"),
    ("imagePullSecrets", "name"),
];

/// Merges `over` into `base`; `over` wins. Null removes a field, `$patch: delete` an element of a list,
/// as in `kubectl patch`.
pub(crate) fn merge(base: Value, over: &Value) -> Value {
    if over.is_null() { base } else { merge_at("", base, over) }
}

/// Adds an element to a list of `of`; fields that a person has written in that element win.
pub(crate) fn add(list: &str, of: &mut Value, element: Value) {
    let Some((_, key)) = KEYS.iter().find(|(name, _)| *name == list) else { return };
    let Some(elements) = of[list].as_array_mut() else { return };
    match elements.iter_mut().find(|one| one[key] == element[key]) {
        Some(written) => *written = merge_at(list, element, &written.take()),
        None => elements.push(element),
    }
}

fn merge_at(field: &str, base: Value, over: &Value) -> Value {
    match (base, over) {
        (Value::Object(mut base), Value::Object(over)) => {
            // A source of a volume or of a variable is one of several: ours does not stay beside it.
            if field == "volumes" || field == "env" {
                base.retain(|name, _| name == "name");
            }
            for (name, value) in over {
                match (base.remove(name), value) {
                    (_, Value::Null) => {}
                    (Some(before), value) => {
                        base.insert(name.clone(), merge_at(name, before, value));
                    }
                    (None, value) => {
                        base.insert(name.clone(), value.clone());
                    }
                }
            }
            Value::Object(base)
        }
        (Value::Array(base), Value::Array(over)) => {
            match KEYS.iter().find(|(list, _)| *list == field) {
                Some((_, key)) => Value::Array(by_key(field, key, base, over)),
                None => Value::Array(over.clone()),
            }
        }
        (_, over) => over.clone(),
    }
}

fn by_key(field: &str, key: &str, mut base: Vec<Value>, over: &[Value]) -> Vec<Value> {
    for element in over {
        if element["$patch"] == "delete" {
            base.retain(|one| one[key] != element[key]);
            continue;
        }
        match base.iter_mut().find(|one| one[key] == element[key]) {
            Some(one) => *one = merge_at(field, one.take(), element),
            None => base.push(element.clone()),
        }
    }
    base
}
