//! Pods: the defaults that clients see, and which few fields may be changed.

use serde_json::{Value, json};

use crate::apiserver::failure::Cause;
use crate::apiserver::object::keep;

/// Fills in defaults as the real server does, and makes a new pod wait for the scheduler.
pub(super) fn complete(pod: &mut Value) {
    for (field, value) in [
        ("dnsPolicy", json!("ClusterFirst")),
        ("enableServiceLinks", json!(true)),
        ("preemptionPolicy", json!("PreemptLowerPriority")),
        ("priority", json!(0)),
        ("restartPolicy", json!("Always")),
        ("schedulerName", json!("default-scheduler")),
        ("securityContext", json!({})),
        ("terminationGracePeriodSeconds", json!(30)),
    ] {
        default(&mut pod["spec"], field, value);
    }
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            let latest = container["image"].as_str().is_some_and(|image| {
                !image.rsplit('/').next().is_some_and(|name| name.contains([':', '@']))
                    || image.ends_with(":latest")
            });
            let pull = if latest { "Always" } else { "IfNotPresent" };
            default(container, "imagePullPolicy", json!(pull));
            default(container, "resources", json!({}));
            default(container, "terminationMessagePath", json!("/dev/termination-log"));
            default(container, "terminationMessagePolicy", json!("File"));
        }
    }
    if pod["spec"]["initContainers"].is_null() {
        pod["spec"].as_object_mut().map(|spec| spec.remove("initContainers"));
    }
    if let Some(account) = pod["spec"]["serviceAccountName"].as_str().map(str::to_owned) {
        pod["spec"]["serviceAccount"] = json!(account);
    }
    pod["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"});
}

fn default(object: &mut Value, field: &str, value: Value) {
    if object[field].is_null() {
        object[field] = value;
    }
}

/// The old pod with the sizes of the new one: a write of `pods/resize` changes nothing else.
pub(super) fn resized(old: &Value, new: &Value) -> Value {
    let mut resized = old.clone();
    resized["metadata"]["resourceVersion"] = new["metadata"]["resourceVersion"].clone();
    for list in ["containers", "initContainers"] {
        for container in resized["spec"][list].as_array_mut().into_iter().flatten() {
            let sizes = new["spec"][list].as_array().into_iter().flatten();
            if let Some(new) = sizes.into_iter().find(|new| new["name"] == container["name"]) {
                container["resources"] = new["resources"].clone();
            }
        }
    }
    resized
}

pub(super) fn validate(old: Option<&Value>, new: &Value, causes: &mut Vec<Cause>) {
    let containers = new["spec"]["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    if containers.is_empty() {
        causes.push(Cause::required("spec.containers", ""));
    }
    for (index, container) in containers.iter().enumerate() {
        for field in ["name", "image"] {
            if container[field].as_str().unwrap_or_default().is_empty() {
                causes.push(Cause::required(format!("spec.containers[{index}].{field}"), ""));
            }
        }
    }
    if old.is_some_and(|old| fixed(old) != fixed(new)) {
        let note = "pod updates may not change fields other than `spec.containers[*].image`,\
                    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                    `spec.tolerations` (only additions to existing tolerations),\
                    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                    previously negative)";
        causes.push(Cause::forbidden("spec", note));
    }
}

/// The spec without the fields that may change.
fn fixed(pod: &Value) -> Value {
    let mut spec = pod["spec"].clone();
    let free = json!({});
    for field in ["activeDeadlineSeconds", "tolerations"] {
        keep(&mut spec, &free, field);
    }
    for list in ["containers", "initContainers"] {
        if let Some(containers) = spec.get_mut(list).and_then(Value::as_array_mut) {
            containers.iter_mut().for_each(|container| keep(container, &free, "image"));
        }
    }
    spec
}
