//! The containers of a pod template.

use serde_json::Value;

/// The containers in a list of the template.
pub(crate) fn containers<'a>(
    template: &'a Value,
    list: &str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    template["spec"][list].as_array().into_iter().flatten()
}

/// True if the kubelet makes the container anew when its process has ended with code 0: unless it has a
/// policy of its own, or rules (Kubernetes 1.34 and later). Pods of a StatefulSet have `Always`.
pub fn is_made_anew(template: &Value, container: &str) -> bool {
    let found = containers(template, "containers").find(|each| each["name"] == container);
    let Some(found) = found else { return true };
    let has_rules = found["restartPolicyRules"].as_array().is_some_and(|rules| !rules.is_empty());
    let policy = &found["restartPolicy"];
    !has_rules && (policy.is_null() || policy == "Always")
}

/// True for an init container that runs as long as the pod.
pub(crate) fn is_sidecar(container: Option<&str>, template: &Value) -> bool {
    let found = containers(template, "initContainers")
        .find(|each| each.get("name").and_then(Value::as_str) == container);
    found.is_some_and(|each| each["restartPolicy"] == "Always")
}
