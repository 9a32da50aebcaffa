//! Every field that a pod template has in Kubernetes 1.34, as its apiserver serves them.

use serde_json::{Value, json};

use super::{template, update};
use crate::UpdateStep;
use crate::difference::Path;
use crate::fields::rule;

/// Sorted; `[]` after a list, `{}` after a map with free keys. A test on a real apiserver compares
/// it with what that serves.
const FIELDS: &str = include_str!("kubernetes-1.34.txt");

fn path(field: &str) -> Path {
    field.split('.').fold(Path::default(), |path, part| {
        let name = part.trim_end_matches("{}");
        match name.strip_suffix("[]") {
            Some(list) => path.field(list).element("opensearch"),
            None => path.field(name),
        }
    })
}

#[test] // proves UPDATE-58
fn each_has_a_row() {
    let without: Vec<_> = FIELDS.lines().filter(|field| rule(&path(field)).is_none()).collect();
    assert!(without.is_empty(), "{without:?}");
    assert_eq!(FIELDS.lines().count(), 830);
}

/// Puts a value at the field, in elements that are named like the engine's container.
fn put(into: &mut Value, field: &str, value: Value) {
    let mut at = into;
    for part in field.split('.') {
        let name = part.trim_end_matches("{}");
        let (name, is_list) = match name.strip_suffix("[]") {
            Some(list) => (list, true),
            None => (name, false),
        };
        if !at[name].is_object() && !at[name].is_array() {
            at[name] = if is_list { json!([]) } else { json!({}) };
        }
        at = &mut at[name];
        if is_list {
            let list = at.as_array_mut().expect("a list");
            if !list.iter().any(|element| element["name"] == "opensearch") {
                list.push(json!({"name": "opensearch"}));
            }
            let found = list.iter_mut().find(|element| element["name"] == "opensearch");
            at = found.expect("it was put there");
        }
    }
    *at = if field.ends_with("{}") { json!({"key": value}) } else { value };
}

/// The step when a value of the field changes, and nothing else: another pod, but for these.
fn expected(field: &str) -> UpdateStep {
    match field {
        "metadata.annotations{}" | "metadata.labels{}" => UpdateStep::Relabel,
        "metadata.finalizers[]" => UpdateStep::Replace,
        // The owner copies nothing else of it.
        _ if field.starts_with("metadata.") => UpdateStep::None,
        "spec.containers[].image" => UpdateStep::Container,
        _ => UpdateStep::Replace,
    }
}

#[test] // proves UPDATE-58
fn each_leads_to_the_step_of_its_row() {
    for field in FIELDS.lines() {
        let (mut actual, mut wanted) = (template(), template());
        put(&mut actual, field, json!("old"));
        put(&mut wanted, field, json!("new"));
        let update = update(&wanted, &actual);
        assert_eq!(update.step, expected(field), "{field}: {:#?}", update.because);
        let named = update.because.first().is_none_or(|first| !first.field.is_empty());
        assert!(named, "{field}");
    }
}

#[test]
fn what_kubernetes_may_add_one_day_is_replaced() {
    for field in ["spec.tomorrow", "spec.containers[].tomorrow", "metadata.tomorrow", "tomorrow"] {
        let mut wanted = template();
        put(&mut wanted, field, json!("new"));
        let update = update(&wanted, &template());
        assert_eq!(update.step, UpdateStep::Replace, "{field}");
        assert!(update.because[0].field.ends_with("tomorrow"), "{:?}", update.because);
    }
}
