//! Whether a pod that is made anew fits on the Kubernetes node that its volume is on, as the scheduler
//! would find. Pure.

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

use crate::workload::has_ended;

static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

/// Why the pod that comes does not fit on the node beside the pods there, and what helps, for people; none
/// if it fits.
///
/// # Errors
/// Nothing there is known to be in the way, and this is not known.
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
    let neighbours::Found { conflicts, unknown } = neighbours::found(node, there, coming);
    why.extend(conflicts);
    match (why.is_empty(), unknown.is_empty()) {
        (true, false) => Err(unknown.join("; ")),
        (is_empty, _) => Ok((!is_empty).then(|| why.join("; "))),
    }
}

/// Why the node has no room for the pod with this spec, in which its size is another one; none if it has. The
/// kubelet evicts nobody for it, and asks for nothing else.
pub(super) fn why_no_room(
    node: &Node,
    there: &[Pod],
    uid: &str,
    wanted: &PodSpec,
) -> Option<String> {
    lacking(node, there, uid, wanted, None)
}

/// Whether it is the pod with this uid.
pub(super) fn is_it(pod: &Pod, uid: &str) -> bool {
    pod.metadata.uid.as_deref() == Some(uid)
}

/// What it requests and the node does not have left, and what helps.
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

/// The scheduler evicts pods of a lower priority than this to make room; none if it evicts no pod, or
/// if that is not known. A template has no priority, only a class; a pod with the same one has it.
fn evicts_below(wanted: &PodSpec, own: Option<&PodSpec>) -> Option<i32> {
    let own = own.filter(|own| own.priority_class_name == wanted.priority_class_name)?;
    let may_evict =
        [wanted, own].iter().all(|spec| spec.preemption_policy.as_deref() != Some("Never"));
    own.priority.filter(|_| may_evict)
}

/// Which Kubernetes nodes a volume can be used on; none if it is any.
pub(super) fn nodes_of(volume: PersistentVolume) -> Option<NodeSelector> {
    volume.spec?.node_affinity?.required
}

/// Whether a volume with this affinity is on one node: where its affinity selects one of these alone. Where it selects none,
/// or they are not known, where it asks for anything but a zone or a region.
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
