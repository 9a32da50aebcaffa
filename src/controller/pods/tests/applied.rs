use serde_json::json;

use crate::pods::*;

fn by(annotations: Value, managed: Value) -> Option<String> {
    let metadata = json!({"annotations": annotations, "managedFields": managed});
    phase_applied_by(&serde_json::from_value(metadata).expect("metadata"))
}

fn owner(manager: &str, operation: &str) -> Value {
    let key = format!("f:{}", annotation::PHASE);
    let fields = json!({"f:metadata": {"f:annotations": {key: {}}}});
    json!([
        {"manager": "other", "operation": "Apply", "fieldsType": "FieldsV1",
         "fieldsV1": {"f:spec": {}}},
        {"manager": manager, "operation": operation, "fieldsType": "FieldsV1",
         "fieldsV1": fields},
    ])
}

#[test]
fn a_phase_is_applied_by_who_has_it_in_a_configuration() {
    let phase = json!({annotation::PHASE: "schedule"});
    assert_eq!(by(json!({}), owner("flux", "Apply")), None);
    assert_eq!(by(phase.clone(), json!(null)), None);
    assert_eq!(by(phase.clone(), owner("kubectl-annotate", "Update")), None);
    assert_eq!(by(phase.clone(), owner("flux", "Apply")).as_deref(), Some("flux"));
    let applied = |value: &str| {
        let last = json!({"metadata": {"annotations": {annotation::PHASE: value}}});
        json!({annotation::PHASE: "schedule", LAST_APPLIED: last.to_string()})
    };
    let argo = owner("argocd-controller", "Update");
    assert_eq!(by(applied("schedule"), argo.clone()).as_deref(), Some("argocd-controller"));
    assert_eq!(by(applied("schedule"), json!(null)).as_deref(), Some("kubectl apply"));
    // A person has written another one since.
    assert_eq!(by(applied("schedule-rolling"), argo), None);
}
