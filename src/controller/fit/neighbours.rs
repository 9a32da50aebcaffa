//! Rules between pods that keep one off a Kubernetes node: ports of the node, required affinity and
//! anti-affinity, and constraints that spread pods. Only the pods on that node are known.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, Node, Pod, PodAffinityTerm, PodSpec, TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};

use super::coming::Coming;
use super::{NO_LABELS, is_it};
use stayput_kube_access::workload::has_ended;

const HOSTNAME: &str = "kubernetes.io/hostname";
/// Label that Kubernetes gives every namespace, with the namespace's name.
const NAMESPACE: &str = "kubernetes.io/metadata.name";

/// Conflicts that keep a pod off the node, and those that may and are not known.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ConflictCheck {
    pub(super) conflicts: Vec<String>,
    pub(super) unknown: Vec<String>,
}

/// Checks the rules between the replacement and the pods on the node, and those elsewhere.
pub(super) fn check(node: &Node, there: &[Pod], coming: &Coming) -> ConflictCheck {
    let mut found = ConflictCheck::default();
    let is_other = |pod: &&Pod| !is_it(pod, &coming.uid) && !has_ended(pod);
    let others: Vec<&Pod> = there.iter().filter(is_other).collect();
    ports(&others, &coming.spec, &mut found);
    let has_label = |term: &PodAffinityTerm| {
        node.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(&term.topology_key))
    };
    let own = Party { namespace: &coming.namespace, labels: &coming.labels };
    let before = coming.before.as_ref();
    for term in anti_affinity(&coming.spec).iter().filter(|term| has_label(term)) {
        against(&own, term, &others, &mut found);
        let is_new = !before.is_some_and(|before| anti_affinity(before).contains(term));
        if term.topology_key != HOSTNAME && is_new {
            found.unknown.push(format!(
                "its pod anti-affinity by {} has changed, and pods on other nodes count for it",
                term.topology_key
            ));
        }
    }
    for pod in &others {
        let Some(spec) = &pod.spec else { continue };
        for term in anti_affinity(spec).iter().filter(|term| has_label(term)) {
            let other = Party::of(pod);
            match other.matches(term, &own) {
                Some(true) => found.conflicts.push(format!(
                    "the pod {}, which is there, has an anti-affinity to it",
                    other.name(pod)
                )),
                Some(false) => {}
                None => found.unknown.push(of_namespaces(&other.name(pod))),
            }
        }
    }
    for term in affinity(&coming.spec) {
        let is_met = others.iter().any(|pod| own.matches(term, &Party::of(pod)) == Some(true));
        let is_as_before = before.is_some_and(|before| affinity(before).contains(term));
        // With the same term before, the scheduler has put a pod here. Beside it may be a pod that is nowhere
        // else, or none anywhere, as for the first of several pods that look for each other.
        if !(is_met && has_label(term) || is_as_before && term.topology_key != HOSTNAME) {
            let to_itself = own.matches(term, &own) != Some(false);
            let says = format!("its pod affinity by {} asks for a pod", term.topology_key);
            if term.topology_key == HOSTNAME && has_label(term) && !to_itself {
                found.conflicts.push(format!("{says} that is not there"))
            } else {
                found.unknown.push(format!("{says}, which may be on other nodes"))
            }
        }
    }
    if before.is_some_and(|before| spread(before) != spread(&coming.spec)) {
        let message =
            "its topologySpreadConstraints have changed, and pods on other nodes count for them";
        found.unknown.push(message.to_owned());
    }
    found
}

/// Adds the pods that an anti-affinity term of the replacement keeps it away from.
fn against(own: &Party<'_>, term: &PodAffinityTerm, others: &[&Pod], found: &mut ConflictCheck) {
    for pod in others {
        let other = Party::of(pod);
        match own.matches(term, &other) {
            Some(true) => found.conflicts.push(format!(
                "it has an anti-affinity to the pod {}, which is there",
                other.name(pod)
            )),
            Some(false) => {}
            None => found.unknown.push(of_namespaces(&other.name(pod))),
        }
    }
}

fn of_namespaces(pod: &str) -> String {
    format!("an anti-affinity with the pod {pod} depends on namespace labels")
}

/// Namespace and labels of a pod, for the terms of other pods.
struct Party<'a> {
    namespace: &'a str,
    labels: &'a BTreeMap<String, String>,
}

impl<'a> Party<'a> {
    fn of(pod: &'a Pod) -> Self {
        let metadata = &pod.metadata;
        Self {
            namespace: metadata.namespace.as_deref().unwrap_or_default(),
            labels: metadata.labels.as_ref().unwrap_or(&NO_LABELS),
        }
    }

    fn name(&self, pod: &Pod) -> String {
        format!("{}/{}", self.namespace, pod.metadata.name.as_deref().unwrap_or_default())
    }

    /// True if a term of this pod selects the other one; `None` if that depends on unknown labels of
    /// namespaces.
    fn matches(&self, term: &PodAffinityTerm, other: &Party<'_>) -> Option<bool> {
        let Some(mut selector) = term.label_selector.clone() else { return Some(false) };
        let keys = |keys: &Option<Vec<String>>| keys.clone().unwrap_or_default();
        for key in keys(&term.match_label_keys) {
            if let Some(value) = self.labels.get(&key) {
                selector.match_labels.get_or_insert_default().insert(key, value.clone());
            }
        }
        for key in keys(&term.mismatch_label_keys) {
            if self.labels.get(&key).is_some_and(|value| other.labels.get(&key) == Some(value)) {
                return Some(false);
            }
        }
        if !selects(selector, other.labels) {
            return Some(false);
        }
        let listed = keys(&term.namespaces);
        match &term.namespace_selector {
            None if listed.is_empty() => Some(other.namespace == self.namespace),
            _ if listed.iter().any(|name| name == other.namespace) => Some(true),
            None => Some(false),
            Some(selector) => of_namespace(selector, other.namespace),
        }
    }
}

/// True if the selector selects the namespace; `None` if it needs labels other than the name, the only one
/// known.
fn of_namespace(selector: &LabelSelector, namespace: &str) -> Option<bool> {
    let labels = selector.match_labels.iter().flatten().map(|(key, _)| key);
    let expressions = selector.match_expressions.iter().flatten().map(|one| &one.key);
    let is_known = labels.chain(expressions).all(|key| key == NAMESPACE);
    let own = BTreeMap::from([(NAMESPACE.to_owned(), namespace.to_owned())]);
    is_known.then(|| selects(selector.clone(), &own))
}

/// True if the selector selects the labels. The apiserver has taken no selector that cannot be read.
fn selects(selector: LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    Selector::try_from(selector).is_ok_and(|selector| selector.matches(labels))
}

fn anti_affinity(spec: &PodSpec) -> &[PodAffinityTerm] {
    let rules = spec.affinity.as_ref().and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let required = rules
        .and_then(|rules| rules.required_during_scheduling_ignored_during_execution.as_deref());
    required.unwrap_or_default()
}

fn affinity(spec: &PodSpec) -> &[PodAffinityTerm] {
    let rules = spec.affinity.as_ref().and_then(|affinity| affinity.pod_affinity.as_ref());
    let required = rules
        .and_then(|rules| rules.required_during_scheduling_ignored_during_execution.as_deref());
    required.unwrap_or_default()
}

/// The constraints that keep a pod from being scheduled.
fn spread(spec: &PodSpec) -> Vec<&TopologySpreadConstraint> {
    let all = spec.topology_spread_constraints.iter().flatten();
    all.filter(|one| one.when_unsatisfiable == "DoNotSchedule").collect()
}

/// Adds the pods on the node that have one of the wanted ports. A port of the node can be had once for each
/// protocol and address.
fn ports(others: &[&Pod], wanted: &PodSpec, found: &mut ConflictCheck) {
    let wanted = node_ports(wanted);
    for pod in others {
        for taken in pod.spec.iter().flat_map(node_ports) {
            if wanted.iter().any(|port| port.conflicts(&taken)) {
                let name = Party::of(pod).name(pod);
                let NodePort { number, protocol, .. } = taken;
                found.conflicts.push(format!(
                    "the pod {name} has the port {number}/{protocol} of the node, which it asks for"
                ));
            }
        }
    }
}

#[derive(Debug)]
struct NodePort {
    number: i32,
    protocol: String,
    address: String,
}

impl NodePort {
    fn conflicts(&self, other: &Self) -> bool {
        let is_any = |port: &Self| matches!(port.address.as_str(), "" | "0.0.0.0" | "::");
        self.number == other.number
            && self.protocol == other.protocol
            && (self.address == other.address || is_any(self) || is_any(other))
    }
}

/// The ports of the node that a pod takes: with `hostNetwork` all of its ports.
fn node_ports(spec: &PodSpec) -> Vec<NodePort> {
    let on_node = spec.host_network == Some(true);
    let stays = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().filter(stays);
    let ports = spec.containers.iter().chain(sidecars).flat_map(|one| one.ports.iter().flatten());
    let of = |port: &k8s_openapi::api::core::v1::ContainerPort| {
        let number = port.host_port.filter(|port| *port > 0);
        Some(NodePort {
            number: number.or(on_node.then_some(port.container_port))?,
            protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
            address: port.host_ip.clone().unwrap_or_default(),
        })
    };
    ports.filter_map(of).collect()
}

#[cfg(test)]
mod tests;
