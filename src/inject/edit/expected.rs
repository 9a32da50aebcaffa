//! Changes applied to values, to check the edited text against.

use serde_json::{Map, Value};

use super::Change;
use super::path::{Path, Step};

/// The value of the manifest after the change.
pub(super) fn expected(mut root: Value, object: &Path, change: &Change) -> Value {
    match change {
        Change::Put { at, child, value } => put(&mut root, &object.join(at), child, value),
        Change::Remove { at, child } => {
            if let Some(collection) = find(&mut root, &object.join(at)) {
                match (collection, child) {
                    (Value::Object(fields), Step::Key(key)) => drop(fields.remove(key)),
                    (Value::Array(items), step) => {
                        if let Some(index) = position(items, step) {
                            items.remove(index);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    root
}

fn put(root: &mut Value, at: &Path, child: &Step, value: &Value) {
    match (find(root, at), child) {
        (Some(Value::Object(fields)), Step::Key(key)) => {
            fields.insert(key.clone(), value.clone());
        }
        (Some(Value::Array(items)), step) => match position(items, step) {
            Some(index) => items[index] = value.clone(),
            None => items.push(value.clone()),
        },
        _ => {
            if let Some((around, last)) = at.split() {
                put(root, &around, &last, &wrapped(child, value));
            }
        }
    }
}

fn find<'a>(root: &'a mut Value, path: &Path) -> Option<&'a mut Value> {
    path.0.iter().try_fold(root, |node, step| match (node, step) {
        (Value::Object(fields), Step::Key(key)) => fields.get_mut(key),
        (Value::Array(items), step) => {
            let index = position(items, step)?;
            items.get_mut(index)
        }
        _ => None,
    })
}

fn position(items: &[Value], step: &Step) -> Option<usize> {
    match step {
        Step::Index(index) => Some(*index),
        Step::Item { field, value } => {
            items.iter().position(|item| item[field.as_str()].as_str() == Some(value))
        }
        Step::Key(_) => None,
    }
}

/// A collection that holds nothing but this child.
pub(super) fn wrapped(child: &Step, value: &Value) -> Value {
    match child {
        Step::Key(key) => Value::Object(Map::from_iter([(key.clone(), value.clone())])),
        Step::Item { field, value: name } => {
            let mut item = value.clone();
            if let Some(fields) = item.as_object_mut() {
                fields.entry(field.clone()).or_insert_with(|| Value::String(name.clone()));
            }
            Value::Array(vec![item])
        }
        Step::Index(_) => Value::Array(vec![value.clone()]),
    }
}
