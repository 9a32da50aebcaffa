//! Existing objects of a declared cluster.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Bootstrap, SeenClaim, Version};

/// State of a declared cluster; only objects that it owns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// StatefulSets, by the name of their node set.
    pub sets: BTreeMap<String, ObservedSet>,
    /// How the cluster forms, as it was first written.
    pub bootstrap: Option<Bootstrap>,
    /// The volume claims of the namespace; read only while nodes with claims are created.
    pub claims: Vec<SeenClaim>,
    /// True if the engine has said that it has formed a cluster.
    pub formed: bool,
}

/// A StatefulSet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedSet {
    /// Wanted number of pods.
    pub replicas: u32,
    /// Number of ready pods.
    pub ready: u32,
    /// Image of the manager in the pod template.
    pub manager_image: Option<String>,
    /// The declaration at the last apply.
    pub declared: Value,
}

impl ObservedSet {
    /// Name of the distribution at the last apply.
    pub(crate) fn distribution(&self) -> Option<&str> {
        self.declared["distribution"].as_str()
    }

    /// Version at the last apply.
    pub(crate) fn version(&self) -> Option<Version> {
        self.declared["version"].as_str()?.parse().ok()
    }

    /// Volume claims at the last apply.
    pub(crate) fn claims(&self) -> Option<&Vec<Value>> {
        self.declared["volumeClaimTemplates"].as_array()
    }
}
