//! Names of the objects of ECK and the OpenSearch operator that a SearchCluster refers to:
//! docs/operators.md. They begin with the name of their cluster.

use kube::core::{ApiResource, GroupVersionKind};

/// One operator, in one of its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operator {
    group: &'static str,
    kind: &'static str,
    /// Resource name of the operator's objects in RBAC rules and for kubectl.
    pub(crate) resource: &'static str,
    /// Label of the operator's pods with the name of their cluster.
    pub(crate) label: &'static str,
    credentials: &'static str,
    authority: &'static str,
    server: &'static str,
}

const OPENSEARCH: Operator = Operator {
    group: "opensearch.org",
    kind: "OpenSearchCluster",
    resource: "opensearchclusters.opensearch.org",
    label: "opensearch.org/opensearch-cluster",
    credentials: "-admin-password",
    authority: "-ca",
    server: "",
};

pub(crate) const OPERATORS: [Operator; 3] = [
    Operator {
        group: "elasticsearch.k8s.elastic.co",
        kind: "Elasticsearch",
        resource: "elasticsearches.elasticsearch.k8s.elastic.co",
        label: "elasticsearch.k8s.elastic.co/cluster-name",
        credentials: "-es-elastic-user",
        authority: "-es-http-certs-public",
        server: "-es-http",
    },
    OPENSEARCH,
    // Before 3.0.
    Operator {
        group: "opensearch.opster.io",
        resource: "opensearchclusters.opensearch.opster.io",
        label: "opster.io/opensearch-cluster",
        ..OPENSEARCH
    },
];

impl Operator {
    /// The kind of the object from which the operator makes a cluster.
    pub(crate) fn api_resource(&self) -> ApiResource {
        let plural = self.resource.split('.').next().unwrap_or_default();
        let kind = GroupVersionKind::gvk(self.group, "v1", self.kind);
        ApiResource::from_gvk_with_plural(&kind, plural)
    }

    /// The Secret with the credentials of the user that may do everything.
    pub(crate) fn credentials(&self, cluster: &str) -> String {
        format!("{cluster}{}", self.credentials)
    }

    /// The Secret with the CA of the engine's certificates.
    pub(crate) fn authority(&self, cluster: &str) -> String {
        format!("{cluster}{}", self.authority)
    }

    /// The name in the engine's certificates.
    pub(crate) fn server(&self, cluster: &str) -> String {
        format!("{cluster}{}", self.server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names stand in the document, for a cluster of the name `logs`.
    #[test] // proves OPERATE-20
    fn names_are_those_in_the_document() {
        let document = include_str!("../../../docs/operators.md");
        for operator in OPERATORS {
            for name in [
                format!("`{}: logs`", operator.label),
                format!("`{}`", operator.credentials("logs")),
                format!("`{}`", operator.authority("logs")),
                format!("`{}`", operator.server("logs")),
            ] {
                assert!(document.contains(&name), "{name}");
            }
        }
    }
}
