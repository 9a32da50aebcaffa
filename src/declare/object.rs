//! An object of Kubernetes that is wanted.

use serde_json::Value;

/// Its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// With the config of a node set.
    Secret,
    /// With the names of the first masters.
    ConfigMap,
    /// Headless: the nodes find each other by it.
    Service,
    /// Of a node set.
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

/// An object as it is applied: every field that is ours, and no other.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// The whole object.
    pub body: Value,
}
