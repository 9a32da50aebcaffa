//! The form in which objects are answered: complete, or only their metadata.

use serde_json::{Value, json};

use super::catalog::Resource;
use super::failure::Failure;

/// The form that the `Accept` header requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Whole,
    Metadata,
}

impl Shape {
    /// The first form in the header that is implemented. Tables are not, so clients fall back.
    pub(super) fn parse(accept: &str) -> Result<Self, Failure> {
        if accept.trim().is_empty() {
            return Ok(Self::Whole);
        }
        for clause in accept.split(',') {
            let mut parts = clause.split(';').map(str::trim);
            if !["application/json", "application/*", "*/*"].contains(&parts.next().unwrap_or("")) {
                continue;
            }
            match parts.find_map(|part| part.strip_prefix("as=")) {
                None => return Ok(Self::Whole),
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => {
                    return Ok(Self::Metadata);
                }
                Some(_) => {}
            }
        }
        Err(Failure::not_acceptable())
    }

    /// One object, as stored.
    pub(super) fn object(self, resource: &Resource, stored: &Value) -> Value {
        match self {
            Self::Whole => resource.encode(stored),
            Self::Metadata => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": stored["metadata"],
            }),
        }
    }

    /// A list of such objects.
    pub(super) fn list(self, resource: &Resource, metadata: Value, items: &[&Value]) -> Value {
        let items: Vec<Value> = items
            .iter()
            .map(|item| {
                let mut item = self.object(resource, item);
                // The real server leaves these out because the list has them already.
                if self == Self::Whole && resource.schema().is_none() {
                    item.as_object_mut()
                        .map(|item| (item.remove("kind"), item.remove("apiVersion")));
                }
                item
            })
            .collect();
        let (kind, version) = match self {
            Self::Whole => (resource.list_kind.clone(), resource.api_version()),
            Self::Metadata => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
        };
        json!({"kind": kind, "apiVersion": version, "metadata": metadata, "items": items})
    }

    /// The object in a bookmark: only the version.
    pub(super) fn bookmark(self, resource: &Resource, version: u64, initial_end: bool) -> Value {
        let mut metadata =
            json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let (kind, api_version) = match self {
            Self::Whole => (resource.kind.clone(), resource.api_version()),
            Self::Metadata => ("PartialObjectMetadata".to_owned(), "meta.k8s.io/v1".to_owned()),
        };
        json!({"kind": kind, "apiVersion": api_version, "metadata": metadata})
    }
}
