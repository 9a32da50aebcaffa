//! Connections that NetworkPolicies allow, as the Kubernetes API defines it: without a policy that
//! selects it, a pod accepts all; with policies, it accepts only connections that one of them allows.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use serde_json::json;

use crate::doctor::{Facts, Finding};
use crate::leader::{NAME, NAMESPACE};

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
fn passage(
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

pub(crate) fn check_network(facts: &Facts) -> Vec<Finding> {
    let (policies, of_reconciler) = match (&facts.policies, &facts.installation.policies) {
        (Ok(policies), Ok(of_reconciler)) => (policies, of_reconciler),
        (Err(unknown), _) | (_, Err(unknown)) => {
            let get = format!("kubectl -n {} get networkpolicies", facts.namespace());
            return vec![Finding::unknown("network", "NetworkPolicy", &unknown.message, get)];
        }
    };
    let labels = [("app.kubernetes.io/name".to_owned(), NAME.to_owned())].into();
    let namespace = facts.installation.namespace.as_ref().ok().and_then(Option::as_ref);
    let namespace_labels = [("kubernetes.io/metadata.name".to_owned(), NAMESPACE.to_owned())]
        .into_iter()
        .chain(namespace.into_iter().flat_map(|one| one.labels().clone()))
        .collect();
    let reconciler = End { namespace: NAMESPACE, namespace_labels, labels, ports: vec![] };
    let spec = facts.cluster.completed_spec();
    let mut pods: BTreeMap<Denied, Vec<String>> = BTreeMap::new();
    for pod in facts.known_pods() {
        let node = end(facts.namespace(), pod);
        for (what, port) in [("manager", spec.manager.port), ("engine", spec.engine.port)] {
            let into = passage(policies, Direction::Ingress, &node, &reconciler, port);
            let out = passage(of_reconciler, Direction::Egress, &reconciler, &node, port);
            for (direction, passage) in [(Direction::Ingress, into), (Direction::Egress, out)] {
                let (policy, is_sure) = match passage {
                    Passage::Open => continue,
                    // One of them is enough to be changed.
                    Passage::Closed(mut policies) => (policies.swap_remove(0), true),
                    Passage::Addresses(policy) => (policy, false),
                };
                let answers = what == "manager" && answers(facts, &pod.name_any());
                let denied = Denied { policy, direction, what, port, is_sure, answers };
                pods.entry(denied).or_default().push(pod.name_any());
            }
        }
    }
    pods.iter().map(|(denied, pods)| denied.finding(facts, pods)).collect()
}

/// True if the manager of this pod answers all the same: not every network enforces policies.
fn answers(facts: &Facts, pod: &str) -> bool {
    facts.snapshot.as_ref().is_ok_and(|taken| {
        let mut pods = taken.saved.snapshot.pods.iter();
        pods.any(|seen| seen.name == pod && seen.manager.is_ok())
    })
}

/// A policy that blocks the connection.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Denied {
    policy: String,
    direction: Direction,
    what: &'static str,
    port: u16,
    is_sure: bool,
    answers: bool,
}

impl Denied {
    fn finding(&self, facts: &Facts, pods: &[String]) -> Finding {
        let Self { policy, direction, what, port, is_sure, answers } = self;
        let pods = pods.join(", ");
        let object = format!("NetworkPolicy/{policy}");
        let remedy = self.remedy(facts);
        let direction = direction.as_str();
        if !is_sure {
            let message = format!(
                "it allows {direction} by addresses; it is unknown whether the reconciler reaches port \
                 {port} ({what}) of {pods}"
            );
            return Finding::unknown("network", object, message, remedy);
        }
        let message =
            format!("it does not let the reconciler through to port {port} ({what}) of {pods}");
        if *answers {
            Finding::warning("network", object, message, remedy)
        } else {
            Finding::error("network", object, message, remedy)
        }
    }

    /// A command that adds a rule to this policy.
    fn remedy(&self, facts: &Facts) -> String {
        let Self { policy, direction, port, .. } = self;
        let (namespace, other, side, policies) = match direction {
            Direction::Ingress => (facts.namespace(), NAMESPACE, "from", &facts.policies),
            Direction::Egress => (NAMESPACE, facts.namespace(), "to", &facts.installation.policies),
        };
        let has_rules = policies.iter().flatten().any(|one| {
            let spec = one.spec.as_ref().filter(|_| one.name_any() == *policy);
            spec.is_some_and(|spec| match direction {
                Direction::Ingress => spec.ingress.is_some(),
                Direction::Egress => spec.egress.is_some(),
            })
        });
        let rule = json!({
            side: [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": other}}}],
            "ports": [{"port": port, "protocol": "TCP"}],
        });
        let direction = direction.as_str();
        let path = format!("/spec/{direction}");
        // `-` adds to a list that is there.
        let patch = if has_rules {
            json!([{"op": "add", "path": path + "/-", "value": rule}])
        } else {
            json!([{"op": "add", "path": path, "value": [rule]}])
        };
        format!("kubectl -n {namespace} patch networkpolicy {policy} --type json -p '{patch}'")
    }
}

fn end<'a>(namespace: &'a str, pod: &Pod) -> End<'a> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let ports = containers.flat_map(|container| container.ports.iter().flatten());
    let ports = ports
        .filter_map(|port| Some((port.name.clone()?, u16::try_from(port.container_port).ok()?)));
    End {
        namespace,
        namespace_labels: [("kubernetes.io/metadata.name".to_owned(), namespace.to_owned())].into(),
        labels: pod.labels().clone(),
        ports: ports.collect(),
    }
}
