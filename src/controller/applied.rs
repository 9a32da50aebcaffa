//! Finds out if the phase on an object is part of a configuration that a tool applies.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use serde_json::Value;

use stayput_restart::annotation;

/// Annotation of client-side apply: the configuration as it was applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Name of the tool that applies the phase as part of a configuration. `None` without a phase, or if a client
/// only wrote it.
pub(super) fn phase_applied_by(metadata: &ObjectMeta) -> Option<String> {
    let annotations = metadata.annotations.as_ref()?;
    let phase = annotations.get(annotation::PHASE)?;
    let owner = |entry: &&ManagedFieldsEntry| owns_phase(entry);
    let mut owners = metadata.managed_fields.iter().flatten().filter(owner);
    let name = |entry: &ManagedFieldsEntry| entry.manager.clone();
    let is_applied = |entry: &ManagedFieldsEntry| entry.operation.as_deref() == Some("Apply");
    // Server-side apply: Flux, and Argo CD if it is told so.
    if let Some(owner) = owners.clone().find(|entry| is_applied(entry)) {
        return Some(name(owner).unwrap_or_else(|| "a server-side apply".into()));
    }
    // Client-side apply: kubectl apply, and Argo CD by default.
    let applied: Value = serde_json::from_str(annotations.get(LAST_APPLIED)?).ok()?;
    let applied = applied.get("metadata")?.get("annotations")?.get(annotation::PHASE)?;
    let by = owners.next().and_then(name).unwrap_or_else(|| "kubectl apply".into());
    (applied.as_str() == Some(phase)).then_some(by)
}

/// True if this manager owns the field with the phase.
pub(super) fn owns_phase(entry: &ManagedFieldsEntry) -> bool {
    let Some(fields) = &entry.fields_v1 else { return false };
    let annotations = fields.0.get("f:metadata").and_then(|metadata| metadata.get("f:annotations"));
    annotations.is_some_and(|all| all.get(format!("f:{}", annotation::PHASE)).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
}
