//! A StatefulSet and its revisions, as plain data.

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use serde_json::Value;

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
    first: i32,
    count: i32,
}

impl Owner {
    pub(in crate::kubectl) fn new(set: &StatefulSet, update: Revision) -> Self {
        let spec = set.spec.as_ref();
        let ordinals = spec.and_then(|spec| spec.ordinals.as_ref());
        Self {
            update,
            first: ordinals.and_then(|ordinals| ordinals.start).unwrap_or(0),
            count: spec.and_then(|spec| spec.replicas).unwrap_or(1),
        }
    }

    /// Whether the set is to have a pod of this number; one without a number is not told apart.
    pub(in crate::kubectl) fn wants(&self, ordinal: Option<i32>) -> bool {
        ordinal.is_none_or(|ordinal| (self.first..self.first + self.count).contains(&ordinal))
    }
}
