//! Room on a Kubernetes node: the requests of the pods there, a cordon, and the nodes that a volume can be
//! used on. The scheduler's other rules are left to the scheduler. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::core::PartialObjectMeta;
use stayput_pod_update::{Amounts, PodRequests, why_no_room};
use stayput_restart::PodUpdate;

use stayput_kube_access::pod::{has_ended, is_sidecar};

/// Sets the sizes of an update.
pub(super) fn resize(spec: &mut PodSpec, update: &PodUpdate) -> Option<()> {
    let init = spec.init_containers.iter_mut().flatten();
    for container in spec.containers.iter_mut().chain(init) {
        let change = update.patch.resources.get(&container.name);
        if let Some(size) = change.and_then(|change| change.wanted.as_deref()) {
            container.resources = serde_json::from_str(size).ok()?;
        }
    }
    Some(())
}

pub(super) fn is_it(pod: &Pod, uid: &str) -> bool {
    pod.metadata.uid.as_deref() == Some(uid)
}

/// Message about a cordon that the pod does not tolerate.
pub(super) fn cordon(node: &Node, wanted: &PodSpec) -> Option<String> {
    let tolerations = wanted.tolerations.iter().flatten();
    let is_tolerated = tolerations.into_iter().any(|one| {
        let key = one.key.as_deref().unwrap_or_default();
        one.operator.as_deref() == Some("Exists")
            && matches!(key, "" | "node.kubernetes.io/unschedulable")
    });
    let is_cordoned = node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
    let name = node.metadata.name.as_deref().unwrap_or_default();
    (is_cordoned && !is_tolerated)
        .then(|| format!("the node is cordoned: `kubectl uncordon {name}`"))
}

/// Message about the resources that a pod requests and the node does not have left beside the others there.
pub(super) fn lacking(
    node: &Node,
    there: &[Pod],
    uid: &str,
    wanted: &PodRequests,
) -> Option<String> {
    let status = node.status.as_ref();
    let allocatable = amounts(status.and_then(|status| status.allocatable.as_ref()));
    let others = there.iter().filter(|pod| !is_it(pod, uid) && !has_ended(pod));
    let others = others.filter_map(|pod| pod.spec.as_ref());
    let others: Vec<PodRequests> = others
        .map(|spec| PodRequests { amounts: requests_of(spec), priority: spec.priority })
        .collect();
    why_no_room(&allocatable, &others, wanted)
}

fn amounts(given: Option<&BTreeMap<String, Quantity>>) -> Amounts {
    let given = given.into_iter().flatten();
    Amounts::of(given.map(|(name, quantity)| (name.as_str(), quantity.0.as_str())))
}

/// Amounts that a pod requests, as the scheduler counts them: the pod itself is one of the node's `pods`.
pub(super) fn requests_of(spec: &PodSpec) -> Amounts {
    // The limit stands in for a missing request.
    let of = |container: &Container| {
        let resources = container.resources.as_ref();
        let limits = amounts(resources.and_then(|all| all.limits.as_ref()));
        limits.or_instead(amounts(resources.and_then(|all| all.requests.as_ref())))
    };
    let (mut sidecars, mut at_start) = (Amounts::default(), Amounts::default());
    for container in spec.init_containers.iter().flatten() {
        at_start = at_start.at_least(&sidecars.clone().plus(&of(container)));
        if is_sidecar(container) {
            sidecars = sidecars.plus(&of(container));
        }
    }
    let all = spec.containers.iter().fold(sidecars, |all, one| all.plus(&of(one)));
    let whole = spec.resources.as_ref().and_then(|whole| whole.requests.as_ref());
    all.at_least(&at_start)
        .or_instead(amounts(whole))
        .plus(&amounts(spec.overhead.as_ref()))
        .or_instead(Amounts::of([("pods", "1")]))
}

/// True if a volume with this affinity is on one node: the affinity selects exactly one of `nodes`. If it
/// selects none, or the nodes are not known: true if it names any label but a zone or a region.
pub(super) fn is_on_one_node(
    affinity: &NodeSelector,
    nodes: Option<&[PartialObjectMeta<Node>]>,
) -> bool {
    let terms = &affinity.node_selector_terms;
    let is_selected = |node: &&PartialObjectMeta<Node>| {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let none = BTreeMap::new();
        let labels = node.metadata.labels.as_ref().unwrap_or(&none);
        terms.iter().any(|term| is_met(term, name, labels))
    };
    match nodes.map(|nodes| nodes.iter().filter(is_selected).count()) {
        None | Some(0) => {}
        Some(selected) => return selected == 1,
    }
    let mut keys = terms.iter().flat_map(|term| {
        let expressions = term.match_expressions.iter().chain(&term.match_fields).flatten();
        expressions.map(|expression| expression.key.as_str())
    });
    let is_area = |key: &str| matches!(key.rsplit('/').next(), Some("zone" | "region"));
    keys.any(|key| !is_area(key))
}

/// True if all conditions of the term hold; a term without conditions selects no node.
fn is_met(term: &NodeSelectorTerm, name: &str, labels: &BTreeMap<String, String>) -> bool {
    let by_label = term.match_expressions.iter().flatten();
    let by_field = term.match_fields.iter().flatten();
    let has_any = by_label.clone().chain(by_field.clone()).next().is_some();
    let of_field = |one: &NodeSelectorRequirement| (one.key == "metadata.name").then_some(name);
    has_any
        && by_label.into_iter().all(|one| holds(one, labels.get(&one.key).map(String::as_str)))
        && by_field.into_iter().all(|one| holds(one, of_field(one)))
}

fn holds(condition: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = condition.values.as_deref().unwrap_or_default();
    let is_among = value.is_some_and(|value| values.iter().any(|one| one == value));
    let numbers =
        || -> Option<(i64, i64)> { Some((value?.parse().ok()?, values.first()?.parse().ok()?)) };
    match condition.operator.as_str() {
        "In" => is_among,
        "NotIn" => !is_among,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers().is_some_and(|(value, least)| value > least),
        "Lt" => numbers().is_some_and(|(value, most)| value < most),
        _ => false,
    }
}
