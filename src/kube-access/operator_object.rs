//! Reads the object that an operator makes pods from: an `Elasticsearch` or an `OpenSearchCluster`. Nothing is
//! ever written there.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use stayput_restart::{OperatorFacts, OperatorKind, OperatorState, annotation};

/// The condition by which ECK confirms that it is paused.
pub const PAUSED: &str = "OrchestrationPaused";

/// The resource of an operator's objects.
pub fn api_resource(kind: OperatorKind) -> ApiResource {
    let of_kind = GroupVersionKind::gvk(kind.group(), "v1", kind.object());
    ApiResource::from_gvk_with_plural(&of_kind, kind.plural())
}

/// The parts of an object that decisions need.
pub fn facts(object: &DynamicObject) -> OperatorFacts {
    let annotations = object.annotations().iter();
    let read = |key: &&String| [annotation::PHASE, annotation::DISABLE].contains(&key.as_str());
    let annotations = annotations.filter(|(key, _)| read(key));
    let budget = &object.data["spec"]["updateStrategy"]["changeBudget"]["maxUnavailable"];
    OperatorFacts {
        annotations: annotations
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect::<BTreeMap<_, _>>(),
        max_unavailable: budget.as_i64(),
        state: state(object),
    }
}

/// State of the operator for an object. Only ECK can be told to do nothing, and only ECK from 3.5 on, which says
/// so, can be paused.
fn state(object: &DynamicObject) -> OperatorState {
    if has(object, annotation::ECK_MANAGED, "false") {
        OperatorState::Unmanaged
    } else if has(object, annotation::ECK_PAUSE, "true") && is_pause_confirmed(object) {
        OperatorState::Paused
    } else {
        OperatorState::Working
    }
}

/// True if an annotation of the object has this value.
pub fn has(object: &DynamicObject, key: &str, value: &str) -> bool {
    object.annotations().get(key).is_some_and(|it| it == value)
}

/// True if ECK reports that it is paused.
fn is_pause_confirmed(object: &DynamicObject) -> bool {
    let mut conditions = object.data["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == PAUSED && one["status"] == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(annotations: Value, rest: Value) -> DynamicObject {
        let mut object = json!({"metadata": {"name": "logs", "annotations": annotations}});
        for part in ["spec", "status"] {
            object[part] = rest[part].clone();
        }
        serde_json::from_value(object).expect("an object")
    }

    #[test] // proves RESTART-164
    fn budget_and_state_are_read_from_the_object() {
        let (pause, managed) = (annotation::ECK_PAUSE, annotation::ECK_MANAGED);
        let confirmed =
            |status: &str| json!({"status": {"conditions": [{"type": PAUSED, "status": status}]}});
        let budget = |budget: Value| json!({"spec": {"updateStrategy": {"changeBudget": {"maxUnavailable": budget}}}});
        let (working, paused) = (OperatorState::Working, OperatorState::Paused);
        let cases = [
            (json!({}), json!({}), None, working),
            (json!({}), budget(json!(0)), Some(0), working),
            (json!({}), budget(json!(-1)), Some(-1), working),
            (json!({}), budget(Value::Null), None, working),
            // Not before ECK says so: ECK before 3.5 does not know the annotation.
            (json!({pause: "true"}), json!({}), None, working),
            (json!({pause: "true"}), confirmed("False"), None, working),
            (json!({pause: "true"}), confirmed("True"), None, paused),
            (json!({pause: "false"}), confirmed("True"), None, working),
            (json!({managed: "false"}), json!({}), None, OperatorState::Unmanaged),
            (json!({managed: "true"}), json!({}), None, working),
        ];
        for (annotations, rest, max_unavailable, state) in cases {
            let read = facts(&object(annotations.clone(), rest.clone()));
            assert_eq!(
                (read.max_unavailable, read.state),
                (max_unavailable, state),
                "{annotations} {rest}"
            );
        }
    }

    #[test]
    fn only_annotations_that_are_read_are_kept() {
        let annotations =
            json!({annotation::PHASE: "schedule", annotation::DISABLE: "*", "a/b": "c"});
        let read = facts(&object(annotations, json!({})));
        let keys: Vec<&str> = read.annotations.keys().map(String::as_str).collect();
        assert_eq!(keys, [annotation::DISABLE, annotation::PHASE]);
    }
}
