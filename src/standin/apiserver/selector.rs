//! `labelSelector` and `fieldSelector`: which objects a list or watch is about.

use serde_json::Value;

use super::catalog::Resource;
use super::failure::Failure;

mod field;
mod label;

use field::Field;
use label::Requirement;

/// All of these must be true.
#[derive(Debug, Clone, Default)]
pub(super) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<Field>,
}

impl Selector {
    /// Reads both; absent ones select everything.
    pub(super) fn parse(
        resource: &Resource,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Self, Failure> {
        let labels = label::parse(labels.unwrap_or_default()).map_err(Failure::bad_request)?;
        let fields =
            field::parse(resource, fields.unwrap_or_default()).map_err(Failure::bad_request)?;
        Ok(Self { labels, fields })
    }

    /// Whether everything is selected.
    pub(super) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether the object, as stored, is selected.
    pub(super) fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.labels.iter().all(|requirement| requirement.matches(labels))
            && self.fields.iter().all(|field| field.matches(object))
    }
}
