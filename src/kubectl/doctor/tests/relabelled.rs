//! What a living pod got from its edited template.

use serde_json::json;

use crate::doctor::Severity;
use crate::doctor::tests::each;
use crate::doctor::tests::healthy::from;

#[test] // proves DOCTOR-6
fn what_a_living_pod_got_is_named_and_what_the_reconciler_needs_itself_is_not() {
    each(&[(
        "a label and an annotation of the edited template",
        |facts| {
            let pod = &mut facts.pods.as_mut().unwrap()[1];
            let entry = |manager: &str, fields: serde_json::Value| {
                from(json!({
                    "manager": manager, "operation": "Update", "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:metadata": fields},
                }))
            };
            pod.metadata.managed_fields = Some(vec![
                entry(
                    "stayput-reconciler",
                    json!({
                        "f:labels": {".": {}, "f:tier": {}, "f:controller-revision-hash": {}},
                        "f:annotations": {
                            "f:example.org/agent": {}, "f:stayput.dev/shown": {},
                            "f:stayput.dev/content": {},
                            "f:elasticsearch.k8s.elastic.co/restart-phase": {},
                        },
                    }),
                ),
                entry("kube-controller-manager", json!({"f:labels": {"f:app": {}}})),
            ]);
        },
        Severity::Note,
        "relabelled",
        "Pod/logs-1",
        [
            "to its edited template while it ran: annotation example.org/agent, label tier",
            "delete the pod, one at a time",
        ],
    )]);
}
