//! inject gives the same pod template as the patch that people applied by hand.

use serde_json::{Map, Value};

use super::manifests::manifest;
use crate::yaml::{documents, one};
use crate::{Options, inject};

const PATCH: &str = include_str!("../../../examples/kubernetes/patch.yaml");

/// A strategic merge patch, as far as the patch has it: lists are merged by these fields.
fn merge(base: &mut Value, patch: &Value) {
    match (base, patch) {
        (Value::Object(base), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    base.remove(key);
                } else if value["$patch"] == "replace" {
                    base.insert(key.clone(), without_directive(value));
                } else {
                    merge(base.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (Value::Array(base), Value::Array(patch)) if patch.iter().any(Value::is_object) => {
            for item in patch {
                let place = base.iter().position(|there| name(there) == name(item));
                match (item["$patch"] == "delete", place) {
                    (true, place) => drop(base.remove(place.expect("what is deleted"))),
                    (false, Some(place)) => merge(&mut base[place], item),
                    (false, None) => base.push(item.clone()),
                }
            }
        }
        (Value::Null, Value::Object(_)) => unreachable!("the patch makes no mapping"),
        (base, patch) => *base = patch.clone(),
    }
}

fn without_directive(value: &Value) -> Value {
    let fields = value.as_object().into_iter().flatten().filter(|(key, _)| *key != "$patch");
    Value::Object(fields.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>())
}

/// What items of a list are told apart by.
fn name(item: &Value) -> Option<&str> {
    item["mountPath"].as_str().or(item["name"].as_str())
}

/// The order of items with a name has no meaning here.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), sorted(value))).collect()
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(sorted).collect();
            if items.iter().all(|item| name(item).is_some()) {
                items.sort_by_key(|item| name(item).map(str::to_owned));
            }
            Value::Array(items)
        }
        other => other.clone(),
    }
}

#[test] // proves MANIFEST-1
fn inject_gives_the_same_pod_template_as_the_patch() {
    let text = manifest("hand-written.yaml");
    let template = |text: &str| {
        let set = documents(text).unwrap().pop().unwrap().root.unwrap().value();
        set["spec"]["template"].clone()
    };
    let mut patched = template(&text);
    let before = sorted(&patched);
    merge(&mut patched, &one(PATCH).unwrap().value()["spec"]["template"]);
    assert_ne!(sorted(&patched), before);
    let injected = inject(&text, &Options::default()).unwrap();
    assert_eq!(injected.notes, []);
    assert_eq!(sorted(&template(&injected.text)), sorted(&patched));
}
