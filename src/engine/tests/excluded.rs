//! The exclusion by name: what is read, and what is set.

use serde_json::json;

use super::super::ExcludedNames;
use super::*;

#[test]
fn a_value_is_a_text_or_a_list_or_unset() {
    let read = |body: serde_json::Value| {
        crate::changes::parse_excluded(&made_up(200, &body.to_string())).expect("it is read")
    };
    let name = "cluster.routing.allocation.exclude._name";
    let both = read(json!({"persistent": {name: "a, b"}, "transient": {name: ["c", "d"]}}));
    let expected = ExcludedNames { persistent: Some("a, b".into()), transient: Some("c,d".into()) };
    assert_eq!(both, expected);
    let other = read(json!({"persistent": {"cluster.max_shards_per_node": "9"}, "transient": {}}));
    assert_eq!(other, ExcludedNames::default());
}

#[test]
fn only_what_differs_is_set() {
    let name = "cluster.routing.allocation.exclude._name";
    let (value, unset) = (Some("a".to_owned()), None);
    assert_eq!(
        crate::changes::excluded_body(Some(&value), None),
        json!({"persistent": {name: "a"}})
    );
    assert_eq!(
        crate::changes::excluded_body(None, Some(&unset)),
        json!({"transient": {name: null}})
    );
    let both = json!({"persistent": {name: null}, "transient": {name: "a"}});
    assert_eq!(crate::changes::excluded_body(Some(&unset), Some(&value)), both);
}
