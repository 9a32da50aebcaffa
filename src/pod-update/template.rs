//! The containers of a pod template, and those that run once: before the engine's first start, and never again in a living
//! pod.

use serde_json::Value;
use stayput_pod_spec::WARM_CONTAINER;

use crate::difference::{Leaf, Segment};
use crate::resources::{amount, is_same_amount, quality};
use crate::update::UpdateStep;

/// The containers in a list of the template.
pub(crate) fn containers<'a>(
    template: &'a Value,
    list: &str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    template["spec"][list].as_array().into_iter().flatten()
}

/// The container of this name in the template, unless it is an init container.
pub(crate) fn container<'a>(template: &'a Value, name: &str) -> Option<&'a Value> {
    containers(template, "containers").find(|container| container["name"] == name)
}

/// The elements of a list of the template; empty for a value that is no list.
pub(crate) fn elements(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// True if the kubelet makes the container anew when its process has ended with code 0: unless it has a
/// policy of its own, or rules (Kubernetes 1.34 and later). Pods of a StatefulSet have `Always`.
pub fn is_made_anew(template: &Value, name: &str) -> bool {
    let Some(found) = container(template, name) else { return true };
    let has_rules = found["restartPolicyRules"].as_array().is_some_and(|rules| !rules.is_empty());
    let policy = &found["restartPolicy"];
    !has_rules && (policy.is_null() || policy == "Always")
}

/// True for an init container that runs as long as the pod.
fn is_sidecar(init_container: &Value) -> bool {
    init_container["restartPolicy"] == "Always"
}

/// True if the template has an init container of this name that runs as long as the pod.
pub(crate) fn has_sidecar(template: &Value, name: Option<&str>) -> bool {
    let mut sidecars = containers(template, "initContainers").filter(|one| is_sidecar(one));
    sidecars.any(|one| one["name"].as_str() == name)
}

/// Init containers of a template that run once.
pub(crate) fn run_once(template: &Value) -> impl Iterator<Item = &Value> {
    containers(template, "initContainers").filter(|container| !is_sidecar(container))
}

/// True if the init container of this name runs once.
pub fn runs_once(template: &Value, name: &str) -> bool {
    run_once(template).any(|container| container["name"] == *name)
}

/// The step for a field of an init container that runs once, if its change asks for less than
/// another pod: its CPU and memory, and all of the container that makes the archive.
pub(crate) fn run_once_step(leaf: &Leaf, wanted: &Value, actual: &Value) -> Option<UpdateStep> {
    let [Segment::Field(spec), Segment::Field(list), Segment::Element(name), rest @ ..] =
        leaf.path.segments()
    else {
        return None;
    };
    let is_there = [wanted, actual].iter().all(|template| runs_once(template, name));
    if spec != "spec" || list != "initContainers" || !is_there {
        return None;
    }
    match rest {
        // The same amount in other words is no change.
        [Segment::Field(field), ..] if field == "resources" && is_same_amount(leaf) => None,
        [Segment::Field(field), rest @ ..] if field == "resources" => {
            let [Segment::Field(_), Segment::Field(resource)] = rest else { return None };
            may_stay(name, resource, wanted, actual).then_some(UpdateStep::Relabel)
        }
        // A JVM ignores an archive that it does not fit. If the pod's containers are made anew, it runs again: then
        // with the engine's image.
        [Segment::Field(field)] if name == WARM_CONTAINER && field == "image" => {
            Some(UpdateStep::Restart)
        }
        [_, ..] if name == WARM_CONTAINER => Some(UpdateStep::Relabel),
        _ => None,
    }
}

/// True if a pod whose init container keeps its amount is as wanted: it takes as much room on its
/// Kubernetes node, and has the quality of service that it had.
fn may_stay(name: &str, resource: &str, wanted: &Value, actual: &Value) -> bool {
    if !matches!(resource, "cpu" | "memory") {
        return false;
    }
    // A request that is not given is the limit.
    let request = |container: &Value| {
        let given = |kind: &str| amount(container["resources"][kind].get(resource));
        given("requests").or_else(|| given("limits")).unwrap_or_default()
    };
    let kept = run_once(actual).filter(|container| container["name"] == *name).map(request);
    let needed: i128 = containers(wanted, "containers").map(request).sum();
    let becomes = with_sizes_of(wanted, actual);
    let is_same = [wanted, &becomes].iter().all(|one| quality(one) == quality(actual));
    is_same && kept.max().unwrap_or_default() <= needed
}

/// The wanted template with the present sizes of init containers that run once: a living pod keeps these.
pub(crate) fn with_sizes_of(wanted: &Value, actual: &Value) -> Value {
    let mut becomes = wanted.clone();
    let kept = |name: &Value| run_once(actual).find(|one| one["name"] == *name);
    for init in becomes["spec"]["initContainers"].as_array_mut().into_iter().flatten() {
        if let Some(kept) = kept(&init["name"]) {
            init["resources"] = kept["resources"].clone();
        }
    }
    becomes
}
