//! The operator that makes pods of engines, the object that it makes them from, and what it does with pods of
//! an older revision.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::snapshot::{Known, Snapshot, known, namespace_and_name};
use crate::{Cluster, annotation};

/// The operator that makes a pod, and the object for which it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Operator {
    /// Kind of the operator.
    pub kind: OperatorKind,
    /// Name of its object.
    pub object: String,
    /// True if labels of pods of the same StatefulSet name an older revision than it wants.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaces_pods: bool,
}

/// An operator that makes pods of engines.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum OperatorKind {
    /// Elastic Cloud on Kubernetes.
    Eck,
    /// The OpenSearch Kubernetes operator from 3.0 on.
    OpenSearch,
    /// The OpenSearch Kubernetes operator before 3.0, with another API group.
    Opster,
}

impl OperatorKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Eck, Self::OpenSearch, Self::Opster];

    /// Label of the operator's pods with the name of their object.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Eck => "elasticsearch.k8s.elastic.co/cluster-name",
            Self::OpenSearch => "opensearch.org/opensearch-cluster",
            Self::Opster => "opster.io/opensearch-cluster",
        }
    }

    /// API group of the operator's objects.
    pub const fn group(self) -> &'static str {
        match self {
            Self::Eck => "elasticsearch.k8s.elastic.co",
            Self::OpenSearch => "opensearch.org",
            Self::Opster => "opensearch.opster.io",
        }
    }

    /// Kind of the operator's objects.
    pub const fn object(self) -> &'static str {
        match self {
            Self::Eck => "Elasticsearch",
            Self::OpenSearch | Self::Opster => "OpenSearchCluster",
        }
    }

    /// Plural of that kind, in requests.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Eck => "elasticsearches",
            Self::OpenSearch | Self::Opster => "opensearchclusters",
        }
    }

    /// Name of that kind for kubectl, which takes the older group for a name without one.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::Eck => "elasticsearch",
            Self::OpenSearch => "opensearchclusters.opensearch.org",
            Self::Opster => "opensearchclusters.opensearch.opster.io",
        }
    }
}

/// The object that an operator makes pods from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorObject {
    /// Kind of the operator.
    pub kind: OperatorKind,
    /// Name of the object.
    pub name: String,
    /// The parts of the object that decisions need.
    #[serde(with = "known")]
    #[schemars(with = "known::Written<OperatorFacts>")]
    pub facts: Known<OperatorFacts>,
}

/// The parts of an operator's object that decisions need.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorFacts {
    /// Annotations by which people ask for a restart and disable predicates.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// How many pods ECK may make unavailable at once (`changeBudget.maxUnavailable`); a negative number is no
    /// limit, and absent is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<i64>,
    /// State of the operator for this object.
    #[serde(skip_serializing_if = "OperatorState::is_working")]
    pub state: OperatorState,
}

/// State of an operator for an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OperatorState {
    /// The operator edits StatefulSets and replaces pods.
    #[default]
    Working,
    /// ECK edits no StatefulSet and deletes no pod, and says so.
    Paused,
    /// ECK does nothing.
    Unmanaged,
}

impl OperatorState {
    const fn is_working(&self) -> bool {
        matches!(self, Self::Working)
    }
}

/// The pods of an older revision that an operator deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// Every pod, one after the other.
    EachPod,
    /// Only pods that are not ready.
    UnreadyPods,
    /// No pod before a person resumes the operator.
    NoPod,
}

impl Operator {
    /// The operator that puts these labels on its pods.
    pub fn of_labels(labels: &BTreeMap<String, String>) -> Option<Self> {
        OperatorKind::ALL.into_iter().find_map(|kind| {
            let object = labels.get(kind.label())?.clone();
            Some(Self { kind, object, replaces_pods: false })
        })
    }

    /// Name of the operator, for people.
    pub const fn name(&self) -> &'static str {
        match self.kind {
            OperatorKind::Eck => "ECK",
            OperatorKind::OpenSearch | OperatorKind::Opster => "the OpenSearch operator",
        }
    }

    /// The operator's object, for people: `Elasticsearch logs`.
    pub fn describe_object(&self) -> String {
        format!("{} {}", self.kind.object(), self.object)
    }

    /// The first operator that replaces some of the pods, or would replace one that is stopped.
    pub(crate) fn replacing(snapshot: &Snapshot) -> Option<&Self> {
        let operators = snapshot.pods.iter().filter_map(|pod| pod.operator.as_ref());
        let cluster = &snapshot.cluster;
        operators
            .filter(|operator| operator.replaces_pods)
            .find(|operator| operator.replacement(cluster) != Replacement::NoPod)
    }

    /// The pods of an older revision that the operator deletes.
    pub(crate) fn replacement(&self, cluster: &Cluster) -> Replacement {
        match self.facts(cluster) {
            Some(OperatorFacts {
                state: OperatorState::Paused | OperatorState::Unmanaged, ..
            }) => Replacement::NoPod,
            Some(OperatorFacts { max_unavailable: Some(0), .. }) => Replacement::UnreadyPods,
            Some(_) | None => Replacement::EachPod,
        }
    }

    /// The operator's object, if it could be read.
    fn facts<'a>(&self, cluster: &'a Cluster) -> Option<&'a OperatorFacts> {
        let mut objects = cluster.operator_objects.iter();
        let found = objects.find(|one| one.kind == self.kind && one.name == self.object)?;
        found.facts.as_ref().ok()
    }

    /// Message about what the operator does with its pods, which have an older revision than it wants, and what
    /// people have to do.
    pub(crate) fn replaces(&self, cluster: &Cluster) -> String {
        let (name, object) = (self.name(), self.describe_object());
        match (self.replacement(cluster), self.facts(cluster)) {
            (Replacement::EachPod, facts) => {
                let is_certain = facts.is_some() || self.kind != OperatorKind::Eck;
                let unless = if is_certain { "" } else { " unless it is paused" };
                format!(
                    "{name} replaces the pods of {object}, which restarts their engines; do nothing{unless}"
                )
            }
            (Replacement::UnreadyPods, _) => format!(
                "the pods of {object} have an older revision, and {name} deletes only one that is not ready, since \
                 changeBudget.maxUnavailable allows 0; {}",
                self.let_it_replace(cluster)
            ),
            (Replacement::NoPod, Some(OperatorFacts { state: OperatorState::Unmanaged, .. })) => {
                format!(
                    "{name} does nothing for {object}, since {} is false: once it is managed again, {name} replaces \
                     its pods",
                    annotation::ECK_MANAGED
                )
            }
            (Replacement::NoPod, _) => format!(
                "{name} is paused for {object}: once {} is gone, {name} replaces its pods",
                annotation::ECK_PAUSE
            ),
        }
    }

    /// How people let ECK replace pods one after the other.
    fn let_it_replace(&self, cluster: &Cluster) -> String {
        let (namespace, _) = namespace_and_name(&cluster.name);
        format!(
            "to let {} replace them one at a time: `{}`; set it back to 0 after",
            self.name(),
            set_eck_budget(namespace, &self.object, Some(1))
        )
    }

    /// How the operator's pods get a template that is not carried out here.
    pub(crate) fn remedy(&self, cluster: &Cluster) -> String {
        let name = self.name();
        match (self.kind, self.replacement(cluster)) {
            (OperatorKind::Eck, Replacement::EachPod) => {
                format!("otherwise {name} replaces the pod by itself")
            }
            (OperatorKind::Eck, Replacement::UnreadyPods) => self.let_it_replace(cluster),
            (OperatorKind::Eck, Replacement::NoPod) => self.replaces(cluster),
            (OperatorKind::OpenSearch | OperatorKind::Opster, _) => {
                format!(
                    "otherwise {name} replaces the pod by itself, unless deploy/keep-pods refuses that"
                )
            }
        }
    }

    /// True if the operator deletes shutdown records of nodes that are in the cluster, whoever
    /// made them.
    pub(crate) const fn deletes_records(&self) -> bool {
        matches!(self.kind, OperatorKind::Eck)
    }
}

/// The command that sets how many pods ECK may make unavailable at once; `None` unsets it.
pub fn set_eck_budget(namespace: &str, elasticsearch: &str, pods: Option<u32>) -> String {
    let budget = json!({ "maxUnavailable": pods });
    let patch = json!({ "spec": { "updateStrategy": { "changeBudget": budget } } });
    let resource = OperatorKind::Eck.resource();
    format!("kubectl -n {namespace} patch {resource} {elasticsearch} --type merge -p '{patch}'")
}

impl OperatorObject {
    /// The object, for people: `Elasticsearch logs`.
    pub fn describe(&self) -> String {
        format!("{} {}", self.kind.object(), self.name)
    }

    /// Value of an annotation, if the object was read.
    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        self.facts.as_ref().ok()?.annotations.get(key).map(String::as_str)
    }
}

#[cfg(test)]
mod tests;
