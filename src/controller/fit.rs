//! Checks that a replacement pod fits on the Kubernetes node of its volume, by the scheduler's rules. Pure.

mod admits;
mod coming;
mod neighbours;
mod requests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, NodeSelector, PersistentVolume, Pod, PodSpec};
use kube::core::PartialObjectMeta;

use admits::{is_met, refusals};
pub(super) use coming::Coming;
use requests::{Amounts, shown};

use stayput_kube_access::workload::has_ended;

static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

/// Reason why the replacement does not fit on the node beside the pods there, and a remedy, for people;
/// `None` if it fits.
///
/// # Errors
/// The facts that are not known, if they alone decide.
pub(super) fn why_not(
    node: &Node,
    there: &[Pod],
    coming: &Coming,
) -> Result<Option<String>, String> {
    let Coming { uid, spec, .. } = coming;
    let mut why = refusals(node, spec);
    let own = there.iter().find(|pod| is_it(pod, uid));
    let evicts_below = evicts_below(spec, own.and_then(|pod| pod.spec.as_ref()));
    why.extend(lacking(node, there, uid, spec, evicts_below));
    let neighbours::ConflictCheck { conflicts, unknown } = neighbours::check(node, there, coming);
    why.extend(conflicts);
    match (why.is_empty(), unknown.is_empty()) {
        (true, false) => Err(unknown.join("; ")),
        (is_empty, _) => Ok((!is_empty).then(|| why.join("; "))),
    }
}

/// Reason why the node has no room for a resize of the pod to this spec, if it has none. The kubelet evicts
/// nobody for a resize, and checks nothing but the amounts.
pub(super) fn why_no_room(
    node: &Node,
    there: &[Pod],
    uid: &str,
    wanted: &PodSpec,
) -> Option<String> {
    lacking(node, there, uid, wanted, None)
}

/// True if the pod has this uid.
pub(super) fn is_it(pod: &Pod, uid: &str) -> bool {
    pod.metadata.uid.as_deref() == Some(uid)
}

/// Message about the resources that the spec requests and the node does not have left, with a remedy.
fn lacking(
    node: &Node,
    there: &[Pod],
    uid: &str,
    wanted: &PodSpec,
    evicts_below: Option<i32>,
) -> Option<String> {
    let status = node.status.as_ref();
    let allocatable = status.and_then(|status| status.allocatable.as_ref());
    let mut left = Amounts::of(allocatable);
    let others = there.iter().filter(|pod| !is_it(pod, uid) && !has_ended(pod));
    for spec in others.filter_map(|pod| pod.spec.as_ref()) {
        let is_evicted = evicts_below.is_some_and(|own| spec.priority.unwrap_or_default() < own);
        if !is_evicted {
            left.take(&Amounts::of_pod(spec));
        }
    }
    let requested = Amounts::of_pod(wanted);
    let lacks = requested.above(&left).map(|(name, wanted, left)| {
        format!("{} {name} of which {} are left", shown(name, wanted), shown(name, left))
    });
    let lacks: Vec<String> = lacks.collect();
    let lists = || format!("it requests {}: make room there, or request less", lacks.join(", "));
    (!lacks.is_empty()).then(lists)
}

/// Priority below which the scheduler evicts pods to make room for this one, if it may evict and the priority
/// is known. A template has no priority, only a class; a pod of the same class has it.
fn evicts_below(wanted: &PodSpec, own: Option<&PodSpec>) -> Option<i32> {
    let own = own.filter(|own| own.priority_class_name == wanted.priority_class_name)?;
    let may_evict =
        [wanted, own].iter().all(|spec| spec.preemption_policy.as_deref() != Some("Never"));
    own.priority.filter(|_| may_evict)
}

/// Affinity of a volume: the Kubernetes nodes that can use it; `None` for all.
pub(super) fn nodes_of(volume: PersistentVolume) -> Option<NodeSelector> {
    volume.spec?.node_affinity?.required
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
        let labels = node.metadata.labels.as_ref().unwrap_or(&NO_LABELS);
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
