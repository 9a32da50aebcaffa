//! The name of a Secret or ConfigMap that a pod reads.

/// Secret or ConfigMap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceKind {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
}

/// An object that a pod reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Kind of the object.
    pub kind: SourceKind,
    /// Name of the object, in the pod's namespace.
    pub name: String,
}

/// Text such as `Secret logs-config`.
impl std::fmt::Display for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            SourceKind::ConfigMap => "ConfigMap",
            SourceKind::Secret => "Secret",
        };
        write!(formatter, "{kind} {}", self.name)
    }
}

impl Source {
    /// Reads the text that `Display` writes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(' ')?;
        let kind = match kind {
            "ConfigMap" => SourceKind::ConfigMap,
            "Secret" => SourceKind::Secret,
            _ => return None,
        };
        Some(Self { kind, name: name.to_owned() })
    }
}
