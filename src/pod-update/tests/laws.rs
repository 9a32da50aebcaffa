//! What is true of any two templates.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{template, update};
use crate::UpdateStep;

/// Changes of the example, each at its own place.
fn changed(changes: &[u8]) -> Value {
    let mut all = template();
    for change in changes {
        match change % 7 {
            0 => all["metadata"]["labels"]["team"] = json!("a"),
            1 => all["spec"]["containers"][0]["image"] = json!("other"),
            2 => all["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("3Gi"),
            3 => all["spec"]["containers"][1]["image"] = json!("other"),
            4 => all["spec"]["priority"] = json!(1),
            5 => all["metadata"]["annotations"]["a"] = json!("b"),
            _ => all["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!(1),
        }
    }
    all
}

/// The same template with the elements of all lists that have names in another order.
fn shuffled(value: &Value) -> Value {
    let Value::Object(fields) = value else { return value.clone() };
    fields.iter().map(|(name, value)| (name.clone(), ordered(name, value))).collect()
}

fn ordered(name: &str, value: &Value) -> Value {
    let Value::Array(list) = value else { return shuffled(value) };
    // Their order is a change of its own.
    let is_kept = name == "initContainers";
    let list = list.iter().map(shuffled);
    if is_kept { list.collect() } else { list.rev().collect() }
}

proptest! {
    #[test]
    fn a_second_pass_changes_nothing(changes in proptest::collection::vec(any::<u8>(), 0..6)) {
        let wanted = changed(&changes);
        prop_assert_eq!(update(&wanted, &wanted).step, UpdateStep::None);
        prop_assert_eq!(update(&wanted, &shuffled(&wanted)).step, UpdateStep::None);
    }

    #[test] // proves UPDATE-58
    fn the_order_of_named_elements_is_of_no_matter(
        old in proptest::collection::vec(any::<u8>(), 0..6),
        new in proptest::collection::vec(any::<u8>(), 0..6),
    ) {
        let (old, new) = (changed(&old), changed(&new));
        prop_assert_eq!(update(&new, &old), update(&shuffled(&new), &old));
    }

    /// No field raises the step of another one.
    #[test] // proves UPDATE-58
    fn the_step_is_the_highest_of_each_change_alone(
        changes in proptest::collection::vec(any::<u8>(), 0..6),
    ) {
        let alone = changes.iter().map(|change| update(&changed(&[*change]), &template()).step);
        let highest = alone.max().unwrap_or(UpdateStep::None);
        prop_assert_eq!(update(&changed(&changes), &template()).step, highest);
    }
}
