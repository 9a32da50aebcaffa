//! Connections that NetworkPolicies allow, as the Kubernetes API defines it: without a policy that
//! selects it, a pod accepts all; with policies, it accepts only connections that one of them allows.

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};

type Labels = BTreeMap<String, String>;

/// One end of a connection.
pub(crate) struct End<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) namespace_labels: Labels,
    pub(crate) labels: Labels,
    /// Names and numbers of the ports.
    pub(crate) ports: Vec<(String, u16)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    Ingress,
    Egress,
}

impl Direction {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }
}

/// Result of the policies for a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    Open,
    /// No policy allows the connection; these select the pod.
    Closed(Vec<String>),
    /// This policy allows addresses, which may be the right ones.
    Addresses(String),
}

/// Evaluates policies of the namespace of `own` for connections to `port`: to it from `other`, or from
/// it to `other`.
pub(crate) fn passage(
    policies: &[NetworkPolicy],
    direction: Direction,
    own: &End<'_>,
    other: &End<'_>,
    port: u16,
) -> Passage {
    let target = if direction == Direction::Ingress { own } else { other };
    let mut closed = Vec::new();
    let mut addresses = None;
    for policy in policies.iter().filter(|policy| concerns(policy, direction, &own.labels)) {
        for (peers, ports) in rules(policy, direction) {
            if !ports.is_empty() && !ports.iter().any(|one| has(one, target, port)) {
                continue;
            }
            if peers.is_empty() || peers.iter().any(|peer| is_peer(peer, own.namespace, other)) {
                return Passage::Open;
            }
            if peers.iter().any(|peer| peer.ip_block.is_some()) {
                addresses = Some(policy.name_any());
            }
        }
        closed.push(policy.name_any());
    }
    match addresses {
        Some(policy) => Passage::Addresses(policy),
        None if closed.is_empty() => Passage::Open,
        None => Passage::Closed(closed),
    }
}

/// True if the selector matches these labels. An invalid one matches nothing.
pub(crate) fn selects(selector: &LabelSelector, labels: &Labels) -> bool {
    Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(labels))
}

fn concerns(policy: &NetworkPolicy, direction: Direction, labels: &Labels) -> bool {
    let Some(spec) = &policy.spec else { return false };
    let types = spec.policy_types.as_deref().unwrap_or_default();
    let is_of = match direction {
        // Every policy is about ingress, unless it says what it is about.
        Direction::Ingress => types.is_empty() || types.iter().any(|one| one == "Ingress"),
        Direction::Egress => {
            types.iter().any(|one| one == "Egress") || (types.is_empty() && spec.egress.is_some())
        }
    };
    let selected = spec.pod_selector.as_ref().is_none_or(|selector| selects(selector, labels));
    is_of && selected
}

fn rules(
    policy: &NetworkPolicy,
    direction: Direction,
) -> Vec<(&[NetworkPolicyPeer], &[NetworkPolicyPort])> {
    let Some(spec) = &policy.spec else { return Vec::new() };
    match direction {
        Direction::Ingress => {
            let rules = spec.ingress.iter().flatten();
            rules.map(|rule| (list(rule.from.as_ref()), list(rule.ports.as_ref()))).collect()
        }
        Direction::Egress => {
            let rules = spec.egress.iter().flatten();
            rules.map(|rule| (list(rule.to.as_ref()), list(rule.ports.as_ref()))).collect()
        }
    }
}

fn list<T>(given: Option<&Vec<T>>) -> &[T] {
    given.map(Vec::as_slice).unwrap_or_default()
}

fn is_peer(peer: &NetworkPolicyPeer, namespace: &str, other: &End<'_>) -> bool {
    let in_namespace = match &peer.namespace_selector {
        Some(selector) => selects(selector, &other.namespace_labels),
        None => peer.ip_block.is_none() && other.namespace == namespace,
    };
    let pod = peer.pod_selector.as_ref();
    in_namespace && pod.is_none_or(|selector| selects(selector, &other.labels))
}

fn has(allowed: &NetworkPolicyPort, target: &End<'_>, port: u16) -> bool {
    if allowed.protocol.as_deref().is_some_and(|protocol| protocol != "TCP") {
        return false;
    }
    match (&allowed.port, allowed.end_port) {
        (None, _) => true,
        (Some(IntOrString::Int(first)), end) => {
            (*first..=end.unwrap_or(*first)).contains(&i32::from(port))
        }
        (Some(IntOrString::String(name)), _) => {
            target.ports.iter().any(|(known, number)| known == name && *number == port)
        }
    }
}
