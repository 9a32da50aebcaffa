//! The operator that makes a pod.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Pod;

/// Label of ECK's pods with the name of their `Elasticsearch`.
const ECK: &str = "elasticsearch.k8s.elastic.co/cluster-name";
/// Labels of the OpenSearch operator's pods with the name of their `OpenSearchCluster`: from 3.0 on, and before.
const OPENSEARCH: [&str; 2] = ["opensearch.org/opensearch-cluster", "opster.io/opensearch-cluster"];

/// The operator that makes a pod, and the object for which it does.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Operator {
    /// Kind of the operator.
    pub kind: OperatorKind,
    /// Name of its object.
    pub object: String,
    /// Pods of the same StatefulSet have an older revision than it wants, so the operator replaces them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaces_pods: bool,
}

/// An operator that makes pods of engines.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum OperatorKind {
    /// Elastic Cloud on Kubernetes.
    Eck,
    /// The OpenSearch Kubernetes operator.
    OpenSearch,
}

impl Operator {
    /// The operator that puts these labels on its pods.
    pub fn of_labels(labels: &BTreeMap<String, String>) -> Option<Self> {
        let made_by = |kind, label: &str| {
            let object = labels.get(label)?.clone();
            Some(Self { kind, object, replaces_pods: false })
        };
        let mut opensearch = OPENSEARCH.iter();
        made_by(OperatorKind::Eck, ECK)
            .or_else(|| opensearch.find_map(|label| made_by(OperatorKind::OpenSearch, label)))
    }

    /// Name of the operator, for people.
    pub const fn name(&self) -> &'static str {
        match self.kind {
            OperatorKind::Eck => "ECK",
            OperatorKind::OpenSearch => "the OpenSearch operator",
        }
    }

    /// The operator's object, for people: `Elasticsearch logs`.
    pub fn describe_object(&self) -> String {
        let kind = match self.kind {
            OperatorKind::Eck => "Elasticsearch",
            OperatorKind::OpenSearch => "OpenSearchCluster",
        };
        format!("{kind} {}", self.object)
    }

    /// The first operator that replaces some of these pods now.
    pub(crate) fn replacing(pods: &[Pod]) -> Option<&Self> {
        pods.iter().filter_map(|pod| pod.operator.as_ref()).find(|operator| operator.replaces_pods)
    }

    /// The remark, for people, that the operator replaces pods, and that nobody has to do anything.
    pub(crate) fn replaces(&self) -> String {
        format!(
            "{} replaces the pods of {}, which restarts their engines; do nothing unless it is paused",
            self.name(),
            self.describe_object()
        )
    }

    /// True if the operator deletes shutdown records of nodes that are in the cluster, whoever
    /// made them.
    pub(crate) const fn deletes_records(&self) -> bool {
        matches!(self.kind, OperatorKind::Eck)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_name_the_operator_and_its_object() {
        let of = |label: &str| {
            let labels = BTreeMap::from([(label.to_owned(), "logs".to_owned())]);
            Operator::of_labels(&labels).map(|operator| operator.describe_object())
        };
        assert_eq!(of(ECK).as_deref(), Some("Elasticsearch logs"));
        for label in OPENSEARCH {
            assert_eq!(of(label).as_deref(), Some("OpenSearchCluster logs"));
        }
        assert_eq!(of("app"), None);
    }
}
