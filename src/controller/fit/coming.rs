//! The replacement of a pod: its new template, and the changes of admission. Those are taken from the living
//! pod, as far as it differs from its own template: containers of a service mesh, amounts of a LimitRange,
//! tolerations and labels.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, PodTemplateSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use stayput_kube_access::workload::REVISION_LABEL;

/// Replacement of a pod.
#[derive(Debug, Clone, Default)]
pub(crate) struct Coming {
    /// Uid of the pod that it replaces.
    pub(crate) uid: String,
    pub(crate) namespace: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) spec: PodSpec,
    /// Spec of the template that the living pod was made from, if known.
    pub(crate) before: Option<PodSpec>,
}

type Amounts = BTreeMap<String, Quantity>;

impl Coming {
    /// A replacement from the same template as the living pod.
    pub(crate) fn again(pod: &Pod) -> Self {
        let spec = pod.spec.clone().unwrap_or_default();
        Self { before: Some(spec.clone()), spec, ..Self::in_place_of(pod) }
    }

    /// A replacement from the template `new` of this revision for a pod that was made from `old`.
    pub(crate) fn of(
        new: PodTemplateSpec,
        old: Option<PodTemplateSpec>,
        pod: &Pod,
        revision: &str,
    ) -> Self {
        let live = pod.spec.clone().unwrap_or_default();
        let mut labels = new.metadata.and_then(|metadata| metadata.labels).unwrap_or_default();
        let mut spec = new.spec.unwrap_or_default();
        let mut before = None;
        if let Some(old) = old {
            let had = old.metadata.and_then(|metadata| metadata.labels).unwrap_or_default();
            for (key, value) in pod.metadata.labels.iter().flatten() {
                if !had.contains_key(key) {
                    labels.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
            let old = old.spec.unwrap_or_default();
            admit(&mut spec, &old, live);
            before = Some(old);
        }
        labels.insert(REVISION_LABEL.to_owned(), revision.to_owned());
        Self { labels, spec, before, ..Self::in_place_of(pod) }
    }

    fn in_place_of(pod: &Pod) -> Self {
        Self {
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            namespace: pod.metadata.namespace.clone().unwrap_or_default(),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// Copies the differences of the living pod from `old` to `new`, where the new template says nothing else.
fn admit(new: &mut PodSpec, old: &PodSpec, live: PodSpec) {
    containers(&mut new.containers, &old.containers, live.containers);
    let of = |list: &Option<Vec<Container>>| list.clone().unwrap_or_default();
    let (mut init, old_init) = (of(&new.init_containers), of(&old.init_containers));
    containers(&mut init, &old_init, live.init_containers.unwrap_or_default());
    new.init_containers = (!init.is_empty()).then_some(init);
    let tolerations = live.tolerations.unwrap_or_default().into_iter();
    let had = old.tolerations.as_deref().unwrap_or_default();
    let added = tolerations.filter(|one| !had.contains(one));
    new.tolerations.get_or_insert_default().extend(added);
    let selector = new.node_selector.get_or_insert_default();
    let had = old.node_selector.clone().unwrap_or_default();
    for (key, value) in live.node_selector.into_iter().flatten() {
        if !had.contains_key(&key) {
            selector.entry(key).or_insert(value);
        }
    }
    // The runtime class sets the overhead.
    if new.runtime_class_name == old.runtime_class_name && new.overhead.is_none() {
        new.overhead = live.overhead;
    }
}

fn containers(new: &mut Vec<Container>, old: &[Container], live: Vec<Container>) {
    for there in live {
        let had = old.iter().find(|one| one.name == there.name);
        match (new.iter_mut().find(|one| one.name == there.name), had) {
            (Some(new), Some(had)) => {
                let of = |container: &Container| container.resources.clone().unwrap_or_default();
                new.resources = Some(resources(of(new), &of(had), of(&there)));
            }
            (None, None) => new.push(there),
            // The template adds or removes the container.
            (Some(_), None) | (None, Some(_)) => {}
        }
    }
}

/// Amounts of a container: of the living one, except those that the new template changes.
fn resources(
    new: ResourceRequirements,
    old: &ResourceRequirements,
    live: ResourceRequirements,
) -> ResourceRequirements {
    let of = |amounts: &Option<Amounts>| amounts.clone().unwrap_or_default();
    let (old_limits, old_requests) = (of(&old.limits), of(&old.requests));
    let (mut limits, mut requests) = (of(&new.limits), of(&new.requests));
    let is_limited_anew =
        |name: &String, limits: &Amounts| limits.get(name) != old_limits.get(name);
    for (name, amount) in live.requests.into_iter().flatten() {
        // A request that the template does not have follows the limit.
        let follows = !old_requests.contains_key(&name)
            && (old_limits.contains_key(&name) || is_limited_anew(&name, &limits));
        if requests.get(&name) == old_requests.get(&name) && !follows {
            requests.insert(name, amount);
        }
    }
    for (name, amount) in live.limits.into_iter().flatten() {
        if !is_limited_anew(&name, &limits) {
            limits.insert(name, amount);
        }
    }
    ResourceRequirements { limits: Some(limits), requests: Some(requests), ..new }
}

#[cfg(test)]
mod tests;
