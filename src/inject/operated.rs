//! The operator's object that a StatefulSet belongs to: its operator writes the StatefulSet, so whoever
//! wants other pods changes that object.

use serde_json::Value;

use crate::finding::ObjectIssue;

/// Kinds that have pods with an engine, with the API group and kubectl's name. Both groups of the
/// OpenSearch operator are served side by side, and kubectl takes the older one for the short name.
const KINDS: [(&str, &str, &str); 3] = [
    ("elasticsearch.k8s.elastic.co", "Elasticsearch", "elasticsearch"),
    ("opensearch.org", "OpenSearchCluster", "opensearchclusters.opensearch.org"),
    ("opensearch.opster.io", "OpenSearchCluster", "opensearchclusters.opensearch.opster.io"),
];

/// An `Elasticsearch` or an `OpenSearchCluster`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatedBy {
    /// Kind of the object.
    pub kind: &'static str,
    /// Resource name of the kind for kubectl.
    pub resource: &'static str,
    /// Name of the object.
    pub name: String,
}

impl OperatedBy {
    /// The operator's object that controls an object with this `metadata`.
    pub fn of(metadata: &Value) -> Option<Self> {
        let mut owners = metadata["ownerReferences"].as_array()?.iter();
        let owner = owners.find(|owner| owner["controller"] == true)?;
        let group = owner["apiVersion"].as_str()?.split('/').next()?;
        let mut kinds = KINDS.into_iter();
        let (_, kind, resource) =
            kinds.find(|(its_group, kind, _)| *its_group == group && owner["kind"] == *kind)?;
        Some(Self { kind, resource, name: owner["name"].as_str()?.to_owned() })
    }

    /// Why a StatefulSet of this object is not changed. `namespace` may be empty.
    pub(crate) fn refusal(&self, namespace: &str) -> ObjectIssue {
        let Self { kind, resource, name } = self;
        let namespace =
            if namespace.is_empty() { String::new() } else { format!("--namespace {namespace} ") };
        ObjectIssue::error(
            "metadata.ownerReferences",
            format!(
                "it belongs to {kind} {name}: the operator would delete its pods, or take the change back"
            ),
            format!(
                "Put it into that object: `kubectl {namespace}get {resource} {name} --output yaml | kubectl \
                 stayput inject | kubectl replace --filename -`"
            ),
        )
    }
}
