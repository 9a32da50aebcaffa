//! The exclusion by name: what is read, and what is set.

use serde_json::json;

use super::*;
use stayput_restart::AllocationBefore;

#[test]
fn a_value_is_a_text_or_a_list_or_unset() {
    let read = |body: serde_json::Value| {
        let answer = made_up(200, &body.to_string());
        crate::changes::parse_allocation(&answer).expect("it is read").excluded
    };
    let name = "cluster.routing.allocation.exclude._name";
    let both = read(json!({"persistent": {name: "a, b"}, "transient": {name: ["c", "d"]}}));
    let expected =
        AllocationBefore { persistent: Some("a, b".into()), transient: Some("c,d".into()) };
    assert_eq!(both, expected);
    let other = read(json!({"persistent": {"cluster.max_shards_per_node": "9"}, "transient": {}}));
    assert_eq!(other, AllocationBefore::default());
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
