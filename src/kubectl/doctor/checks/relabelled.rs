//! Labels and annotations that a living pod got from its edited template (step `relabel`). What is read only
//! when a pod is made has no effect then. The apiserver keeps who has written which field, so nobody remembers it.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use stayput_kube_access::workload::REVISION_LABEL;
use stayput_restart::annotation;

use crate::doctor::facts::Facts;
use crate::doctor::finding::Finding;
use crate::leader::NAME;

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    facts.known_pods().iter().filter_map(of_pod).collect()
}

fn of_pod(pod: &Pod) -> Option<Finding> {
    let written = written(pod);
    let remedy = "if a program reads one of them only when a pod is made, delete the pod, one at a time and while the \
                  cluster is green; otherwise there is nothing to do";
    (!written.is_empty()).then(|| {
        let message =
            format!("it was changed to its edited template while it ran: {}", written.join(", "));
        Finding::error("relabelled", format!("Pod/{}", pod.name_any()), message, remedy).into_note()
    })
}

/// Names of the labels and annotations that the reconciler has written, without those of its own.
fn written(pod: &Pod) -> Vec<String> {
    let ours = pod.managed_fields().iter().filter(|entry| entry.manager.as_deref() == Some(NAME));
    let mut names = Vec::new();
    for fields in ours.filter_map(|entry| entry.fields_v1.as_ref()) {
        for (kind, group) in [("label", "f:labels"), ("annotation", "f:annotations")] {
            let keys = fields.0["f:metadata"][group].as_object().into_iter().flatten();
            let keys = keys.filter_map(|(key, _)| key.strip_prefix("f:"));
            let theirs =
                keys.filter(|key| *key != REVISION_LABEL && !annotation::ALL.contains(key));
            names.extend(theirs.map(|key| format!("{kind} {key}")));
        }
    }
    names.sort();
    names.dedup();
    names
}
