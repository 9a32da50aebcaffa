//! The difference of two statuses, as a JSON patch (RFC 6902): the ledger of a large cluster is a megabyte,
//! and a step changes a few lines of it, also in lists.
//!
//! Another writer may have stored the same members in another form: in another order, or with values in other
//! places. So the patch tests each old value of them that it changes: if one differs, the apiserver changes
//! nothing. All else has one form.

use std::collections::BTreeMap;

use json_patch::PatchOperation;
use json_patch::jsonptr::{Pointer, PointerBuf};
use serde_json::{Map, Value};

use stayput_kube_access::patch_operations::{self, add, place, replace};

/// Path of the restart; its members are below it.
const RESTART: &Pointer = Pointer::from_static("/status/ledger/restart");
/// Fields that identify an item of a list; the first one that it has counts.
const NAMES: [&str; 4] = ["type", "name", "id", "podUid"];
/// Characters that Go escapes in JSON, as `\u003c` and the like; the apiserver compares the escaped text.
const ESCAPED_BY_GO: [char; 7] = ['<', '>', '&', '\u{2028}', '\u{2029}', '\u{8}', '\u{c}'];
/// Limit of the operations of a small change; the apiserver takes 10,000.
const MOST: usize = 2_000;

/// The operations that change `before` to `after`; `None` if the whole of `after` is no longer than they are.
pub(super) fn difference(before: &Value, after: &Value) -> Option<Vec<PatchOperation>> {
    let operations = changes(&place(["status"]), before, after);
    let is_small = operations.len() <= MOST && length(&operations) < after.to_string().len();
    (is_small || operations.is_empty()).then_some(operations)
}

/// The operations for the parts that differ, or for the whole if that is shorter.
fn changes(path: &Pointer, before: &Value, after: &Value) -> Vec<PatchOperation> {
    if before == after {
        return vec![];
    }
    let parts = match (before, after) {
        (Value::Object(before), Value::Object(after)) => Some(fields(path, before, after)),
        (Value::Array(before), Value::Array(after)) => Some(items(path, before, after)),
        _ => None,
    };
    // Text, not values: a copy of a large map takes longer.
    let length_of_test = || if is_tested(path) { before.to_string().len() } else { 0 };
    let whole = || length_of_test() + after.to_string().len();
    // Only a test of the whole list covers its number of items.
    let is_in_parts = |parts: &Vec<PatchOperation>| {
        is_tested(path) && has_escaped(before) || length(parts) < whole()
    };
    parts.filter(is_in_parts).unwrap_or_else(|| {
        let mut whole = test(path, before);
        whole.push(replace(path.to_buf(), after.clone()));
        whole
    })
}

fn length(operations: &[PatchOperation]) -> usize {
    operations.iter().map(|operation| operation.to_string().len()).sum()
}

/// True if the value at this path may be stored in another form.
fn is_tested(path: &Pointer) -> bool {
    path != RESTART && path.starts_with(RESTART)
}

/// Tests of the value at this path, without those texts that would never pass.
fn test(path: &Pointer, value: &Value) -> Vec<PatchOperation> {
    match value {
        _ if !is_tested(path) => vec![],
        _ if !has_escaped(value) => {
            vec![patch_operations::test(path.to_buf(), value.clone())]
        }
        Value::Object(all) => all
            .iter()
            .flat_map(|(key, value)| test(&path.with_trailing_token(key), value))
            .collect(),
        Value::Array(all) => {
            let items = all.iter().enumerate();
            items.flat_map(|(at, item)| test(&path.with_trailing_token(at), item)).collect()
        }
        _ => vec![],
    }
}

fn has_escaped(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(ESCAPED_BY_GO),
        Value::Array(all) => all.iter().any(has_escaped),
        Value::Object(all) => all.values().any(has_escaped),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn remove(path: PointerBuf, value: &Value) -> Vec<PatchOperation> {
    let mut parts = test(&path, value);
    parts.push(patch_operations::remove(path));
    parts
}

fn fields(
    path: &Pointer,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Vec<PatchOperation> {
    let gone = before.iter().filter(|(key, _)| !after.contains_key(*key));
    let mut parts: Vec<PatchOperation> =
        gone.flat_map(|(key, old)| remove(path.with_trailing_token(key), old)).collect();
    for (key, wanted) in after {
        let field = path.with_trailing_token(key);
        match before.get(key) {
            Some(old) => parts.extend(changes(&field, old, wanted)),
            None => parts.push(add(field, wanted.clone())),
        }
    }
    parts
}

/// The operations that change a list. Items keep their order: one that comes later than before is removed and
/// added again.
fn items(path: &Pointer, before: &[Value], after: &[Value]) -> Vec<PatchOperation> {
    let named = |items: &[Value]| -> Vec<String> {
        items.iter().map(|item| name(item).to_string()).collect()
    };
    let (old_names, new_names) = (named(before), named(after));
    let (mut old_left, mut new_left) = (count(&old_names), count(&new_names));
    let mut old = before.iter().zip(&old_names).peekable();
    let (mut parts, mut at) = (Vec::new(), 0);
    for (wanted, wanted_name) in after.iter().zip(&new_names) {
        let place = path.with_trailing_token(at);
        let comes_later = has(&old_left, wanted_name);
        while let Some((item, item_name)) = old.next_if(|(_, item_name)| {
            let is_in_the_way = comes_later || !has(&new_left, item_name);
            *item_name != wanted_name && is_in_the_way
        }) {
            parts.extend(remove(place.clone(), item));
            take(&mut old_left, item_name);
        }
        match old.next_if(|(_, item_name)| *item_name == wanted_name) {
            Some((item, item_name)) => {
                let inner = changes(&place, item, wanted);
                if !inner.is_empty() {
                    parts.extend(test_name(&place, item));
                }
                parts.extend(inner);
                take(&mut old_left, item_name);
            }
            None => parts.push(add(place, wanted.clone())),
        }
        take(&mut new_left, wanted_name);
        at += 1;
    }
    parts.extend(old.flat_map(|(item, _)| remove(path.with_trailing_token(at), item)));
    parts
}

/// The identity of an item: its name, or else all its fields that are not objects.
fn name(item: &Value) -> Value {
    let Value::Object(all) = item else { return item.clone() };
    let field = |key: &str| Some((key.to_owned(), all.get(key)?.clone()));
    if let Some(named) = NAMES.into_iter().find_map(field) {
        return Value::Object(Map::from_iter([named]));
    }
    let plain = all.iter().filter(|(_, value)| !value.is_object());
    Value::Object(plain.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Tests that this item is at this place.
fn test_name(place: &Pointer, item: &Value) -> Vec<PatchOperation> {
    match name(item) {
        Value::Object(name) if !name.is_empty() => name
            .iter()
            .flat_map(|(key, value)| test(&place.with_trailing_token(key), value))
            .collect(),
        _ => test(place, item),
    }
}

fn count(names: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name.as_str()).or_default() += 1;
    }
    counts
}

fn has(counts: &BTreeMap<&str, usize>, name: &str) -> bool {
    counts.get(name).is_some_and(|left| *left > 0)
}

fn take(counts: &mut BTreeMap<&str, usize>, name: &str) {
    if let Some(left) = counts.get_mut(name) {
        *left -= 1;
    }
}

#[cfg(test)]
mod tests;
