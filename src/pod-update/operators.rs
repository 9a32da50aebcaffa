//! Parts of a pod template that an operator writes, and the step for a change of each.
//!
//! Sources: cloud-on-k8s 3.5 (`pkg/controller/elasticsearch/nodespec/podspec.go`, `stackmon/sidecar.go`,
//! `common/defaults/pod_template.go`) and opensearch-k8s-operator 2.8 and 3.0 (`pkg/builders/cluster.go`).
//!
//! Labels of operators are for selectors, and for the operators themselves, which read roles, version and scheme of a
//! pod there: they are patched as other labels are.

use serde_json::Value;

use crate::difference::{Leaf, Segment};
use crate::template::{elements, run_once};
use crate::update::UpdateStep::{self, Container, Relabel, Replace, Restart};

/// Annotations with which a person, or an operator, asks for something, and the step that does it.
const ANNOTATIONS: [(&str, UpdateStep); 10] = [
    // `kubectl rollout restart`.
    ("kubectl.kubernetes.io/restartedAt", Restart),
    // A person asks ECK for a restart.
    ("eck.k8s.elastic.co/restart-trigger", Restart),
    // Hash of the config, of scripts and of secure settings. What init containers read of these is compared by its
    // content.
    ("elasticsearch.k8s.elastic.co/config-hash", Restart),
    // Hash of the config and of mounted Secrets by a StackConfigPolicy.
    ("policy.k8s.elastic.co/elasticsearch-config-mounts-hash", Restart),
    // Metricbeat and Filebeat read their config when they are started, and no step starts only these anew.
    ("elasticsearch.k8s.elastic.co/monitoring-config-hash", Replace),
    // ECK deletes the certificate of a pod that has it, and its engine would still need that.
    ("elasticsearch.k8s.elastic.co/self-signed-transport-cert-disabled", Replace),
    // ECK has the kubelet renew mounted files by it: no process reads it.
    ("update.k8s.elastic.co/timestamp", Relabel),
    // Hash of the config of the OpenSearch operator, which mounts it by `subPath`.
    ("opensearch.org/config", Container),
    // The operator's own record of the StatefulSet that it has made. It is in the template until the next look at the set.
    ("opensearch.org/last-applied", Relabel),
    // Before 3.0.
    ("opster.io/config", Container),
];

/// Domains of operators. Subdomains are theirs, too.
const DOMAINS: [&str; 3] = ["elastic.co", "opensearch.org", "opster.io"];

/// The row of an annotation.
fn row(annotation: &str) -> Option<UpdateStep> {
    ANNOTATIONS.iter().find(|(name, _)| *name == annotation).map(|(_, step)| *step)
}

/// True for an annotation that tells of another change. Nothing in a pod goes by its value.
pub(crate) fn is_marker(annotation: &str) -> bool {
    row(annotation).is_some()
}

/// The step for a change of an operator's annotation. An operator may mean anything by one that is not known.
pub(crate) fn annotation_step(annotation: &str) -> Option<UpdateStep> {
    let (domain, _) = annotation.split_once('/')?;
    let is_in = |known: &str| {
        domain.strip_suffix(known).is_some_and(|sub| sub.is_empty() || sub.ends_with('.'))
    };
    row(annotation).or_else(|| DOMAINS.iter().any(|known| is_in(known)).then_some(Replace))
}

/// True for the pod template of an engine that ECK has made.
fn is_of_eck(template: &Value) -> bool {
    template["metadata"]["labels"]["elasticsearch.k8s.elastic.co/cluster-name"].is_string()
}

/// True for ECK's volume with files of all labels and annotations: its hooks and scripts look for the version in
/// them, and for annotations of Kubernetes nodes, which no template has.
pub(crate) fn is_of_hooks(template: &Value, volume: &Value) -> bool {
    is_of_eck(template) && volume["name"] == "downward-api"
}

/// True for a changed variable that an init container has from the engine's container. ECK copies each of these
/// to all init containers, for tools that read the engine's config. One that runs once does not need it
/// again, unless its command has the name of the variable.
pub(crate) fn is_inherited(leaf: &Leaf, all: &[Leaf], wanted: &Value, engine: &str) -> bool {
    let [Segment::Field(_), Segment::Field(list), Segment::Element(init), field @ ..] =
        leaf.path.segments()
    else {
        return false;
    };
    let [Segment::Field(env), Segment::Element(variable), ..] = field else { return false };
    let of_engine = |other: &&Leaf| {
        let [_, Segment::Field(list), Segment::Element(name), same @ ..] = other.path.segments()
        else {
            return false;
        };
        list == "containers" && name == engine && same == field
    };
    let is_copy = |other: &Leaf| (&other.from, &other.to) == (&leaf.from, &leaf.to);
    let names_it = |init: &Value| {
        let words = elements(&init["command"]).chain(elements(&init["args"]));
        words.filter_map(Value::as_str).any(|word| word.contains(variable))
    };
    list == "initContainers"
        && env == "env"
        && is_of_eck(wanted)
        && run_once(wanted).any(|one| one["name"] == **init && !names_it(one))
        && all.iter().find(of_engine).is_some_and(is_copy)
}
