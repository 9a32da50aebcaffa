//! A wanted object of Kubernetes.

use serde_json::Value;

/// Kind of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Secret with the config of a node set.
    Secret,
    /// ConfigMap with the names of the first masters.
    ConfigMap,
    /// Headless Service, by which the nodes find each other.
    Service,
    /// StatefulSet of a node set.
    StatefulSet,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::Service => "Service",
            Self::StatefulSet => "StatefulSet",
        })
    }
}

/// An object as it is applied: exactly the fields that belong to stayput.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Kind of the object.
    pub kind: Kind,
    /// Name of the object.
    pub name: String,
    /// The whole object.
    pub body: Value,
}
