//! The difference of two statuses, as a merge patch (RFC 7396): the ledger of a large cluster is
//! megabytes, and a step changes a few lines of it.

use serde_json::{Map, Value};

/// What makes `after` of `before`. None if it cannot be said: in a merge patch, null removes a
/// field.
pub(super) fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => fields(before, after),
        (_, after) => (!has_null(after)).then(|| after.clone()),
    }
}

fn fields(before: &Map<String, Value>, after: &Map<String, Value>) -> Option<Value> {
    let mut patch = Map::new();
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    patch.extend(gone.map(|key| (key.clone(), Value::Null)));
    for (key, wanted) in after {
        match before.get(key) {
            Some(same) if same == wanted => {}
            Some(old) => drop(patch.insert(key.clone(), merge_patch(old, wanted)?)),
            None => drop(patch.insert(key.clone(), merge_patch(&Value::Null, wanted)?)),
        }
    }
    Some(Value::Object(patch))
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3_u8).prop_map(Value::from),
            "[ab]".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[abc]", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_it_says_makes_the_one_of_the_other(before in value(), after in value()) {
            if let Some(patch) = merge_patch(&before, &after) {
                let mut merged = before;
                json_patch::merge(&mut merged, &patch);
                prop_assert_eq!(merged, after);
            }
        }
    }

    #[test]
    fn it_has_what_differs_and_nothing_else() {
        let before = json!({"done": {"a": "1", "b": "2"}, "members": [1], "phase": "x", "old": 1});
        let after = json!({"done": {"a": "1", "b": "3", "c": "4"}, "members": [1], "phase": "x"});
        let patch = json!({"done": {"b": "3", "c": "4"}, "old": null});
        assert_eq!(merge_patch(&before, &after), Some(patch));
        assert_eq!(merge_patch(&before, &before), Some(json!({})));
        assert_eq!(merge_patch(&json!({}), &json!({"a": null})), None, "null would remove it");
        assert_eq!(merge_patch(&json!({}), &json!({"a": {"b": [{"c": null}]}})), None);
    }
}
