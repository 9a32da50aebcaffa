//! Checks that NetworkPolicies let the reconciler through to managers and engine.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::json;

use crate::doctor::facts::Facts;
use crate::doctor::finding::Finding;
use crate::doctor::network::{Direction, End, Passage, passage};
use crate::leader::{NAME, NAMESPACE};

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let object = || "NetworkPolicy".to_owned();
    let (policies, of_reconciler) = match (&facts.policies, &facts.reconciler_policies) {
        (Ok(policies), Ok(of_reconciler)) => (policies, of_reconciler),
        (Err(unknown), _) | (_, Err(unknown)) => {
            let get = format!("kubectl -n {} get networkpolicies", facts.namespace());
            return vec![Finding::error("network", object(), &unknown.message, get).into_unknown()];
        }
    };
    let labels = [("app.kubernetes.io/name".to_owned(), NAME.to_owned())].into();
    let namespace = facts.reconciler_namespace.as_ref().ok().and_then(Option::as_ref);
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
            return Finding::error("network", object, message, remedy).into_unknown();
        }
        let message =
            format!("it does not let the reconciler through to port {port} ({what}) of {pods}");
        let finding = Finding::error("network", object, message, remedy);
        if *answers { finding.into_warning() } else { finding }
    }

    /// A command that adds a rule to this policy.
    fn remedy(&self, facts: &Facts) -> String {
        let Self { policy, direction, port, .. } = self;
        let (namespace, other, side, policies) = match direction {
            Direction::Ingress => (facts.namespace(), NAMESPACE, "from", &facts.policies),
            Direction::Egress => (NAMESPACE, facts.namespace(), "to", &facts.reconciler_policies),
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
