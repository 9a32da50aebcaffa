//! The containers of a pod template.

use serde_json::Value;

/// The containers in a list of the template.
pub(crate) fn containers<'a>(
    template: &'a Value,
    list: &str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    template["spec"][list].as_array().into_iter().flatten()
}

/// Whether it is an init container that runs as long as the pod.
pub(crate) fn is_sidecar(container: Option<&str>, template: &Value) -> bool {
    let found = containers(template, "initContainers")
        .find(|each| each.get("name").and_then(Value::as_str) == container);
    found.is_some_and(|each| each["restartPolicy"] == "Always")
}
