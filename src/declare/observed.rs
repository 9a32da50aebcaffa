//! What is there of a declared cluster.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Bootstrap, SeenClaim, Version};

/// What is there of a declared cluster; only objects that it owns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// StatefulSets, by the name of their node set.
    pub sets: BTreeMap<String, ObservedSet>,
    /// How the cluster forms, as it was written first.
    pub bootstrap: Option<Bootstrap>,
    /// The volume claims of the namespace; they are read only while nodes are made that have claims.
    pub claims: Vec<SeenClaim>,
    /// The engine has said that it has formed a cluster.
    pub formed: bool,
}

/// A StatefulSet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedSet {
    /// How many pods it is to have.
    pub replicas: u32,
    /// How many of them are ready.
    pub ready: u32,
    /// Image of the manager in its pod template.
    pub manager_image: Option<String>,
    /// What was declared when it was applied last.
    pub declared: Value,
}

impl ObservedSet {
    /// The name of the distribution that it was applied for.
    pub(crate) fn distribution(&self) -> Option<&str> {
        self.declared["distribution"].as_str()
    }

    /// The version that it was applied for.
    pub(crate) fn version(&self) -> Option<Version> {
        self.declared["version"].as_str()?.parse().ok()
    }

    /// The claims that it was applied with.
    pub(crate) fn claims(&self) -> Option<&Vec<Value>> {
        self.declared["volumeClaimTemplates"].as_array()
    }
}
