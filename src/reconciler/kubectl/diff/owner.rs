//! A StatefulSet and its revisions, as plain data.

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use serde_json::Value;

use crate::workload::first_ordinal;

/// A pod template as a ControllerRevision keeps it: with fields that we do not know.
#[derive(Debug, Clone)]
pub(in crate::kubectl) struct Revision {
    pub(in crate::kubectl) template: Value,
}

impl Revision {
    pub(in crate::kubectl) fn from_object(revision: &ControllerRevision) -> Self {
        let data = revision.data.as_ref().map_or(&Value::Null, |data| &data.0);
        let mut template = data["spec"]["template"].clone();
        // How the revision is to be applied, and no field of a template.
        template.as_object_mut().map(|template| template.remove("$patch"));
        Self { template }
    }
}

/// A StatefulSet: how many pods it wants, and of what template.
#[derive(Debug, Clone)]
pub(in crate::kubectl) struct Owner {
    pub(in crate::kubectl) update: Revision,
    first: i64,
    count: i64,
}

impl Owner {
    pub(in crate::kubectl) fn new(set: &StatefulSet, update: Revision) -> Self {
        let count = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        Self { update, first: first_ordinal(set), count: count.into() }
    }

    /// Whether the set is to have a pod of this number; one without a number is not told apart.
    pub(in crate::kubectl) fn wants(&self, ordinal: Option<i64>) -> bool {
        ordinal.is_none_or(|ordinal| (self.first..self.first + self.count).contains(&ordinal))
    }
}
