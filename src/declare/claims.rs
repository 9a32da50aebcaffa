//! Volume claims that exist before the pods that would mount them.
//!
//! A StatefulSet mounts the claim of the right name, whoever made it, and Kubernetes gives each claim
//! that it makes the labels of the StatefulSet's pods.

use std::collections::BTreeMap;

use crate::object::{CLUSTER, NODE_SET, stateful_set_name};
use crate::{Cluster, NodeSet, Observed};

/// An existing volume claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenClaim {
    /// Name of the claim.
    pub name: String,
    /// Labels of the claim.
    pub labels: BTreeMap<String, String>,
    /// True if the claim is being deleted: it goes as soon as no pod mounts it.
    pub is_being_deleted: bool,
}

/// An existing claim that a new node would mount and that does not belong to its node set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "PersistentVolumeClaim {name} exists and is not of node set {set}, whose node would start on what is in \
     it: choose another name for the node set; if it is meant to, give the claim the labels {}={cluster} \
     and {}={set}; or delete it with what is in it",
    CLUSTER,
    NODE_SET
)]
pub struct ForeignClaim {
    name: String,
    set: String,
    cluster: String,
}

/// True if nodes with claims are about to be created: then the existing claims have to be known.
pub fn makes_claims(cluster: &Cluster, observed: &Observed) -> bool {
    cluster
        .node_sets
        .iter()
        .any(|set| !set.volume_claim_templates.is_empty() && replicas(observed, set) < set.count)
}

/// The existing claims that nodes would mount that are not created yet, each with the node set.
pub(crate) fn existing_claims<'a>(
    cluster: &'a Cluster,
    observed: &'a Observed,
) -> impl Iterator<Item = (&'a SeenClaim, &'a NodeSet)> {
    let there: BTreeMap<&str, &SeenClaim> =
        observed.claims.iter().map(|claim| (claim.name.as_str(), claim)).collect();
    let mut found = Vec::new();
    for set in cluster.sorted() {
        let templates = set.volume_claim_templates.iter();
        let templates = templates.filter_map(|claim| claim["metadata"]["name"].as_str());
        let stateful_set = stateful_set_name(&cluster.name, &set.name);
        for template in templates {
            for number in replicas(observed, set)..set.count {
                let claim = there.get(format!("{template}-{stateful_set}-{number}").as_str());
                found.extend(claim.map(|claim| (*claim, set)));
            }
        }
    }
    found.into_iter()
}

/// The existing claims that new nodes would mount and that do not belong to their node set.
pub fn foreign_claims(cluster: &Cluster, observed: &Observed) -> Vec<ForeignClaim> {
    let foreign =
        existing_claims(cluster, observed).filter(|(claim, set)| !is_of(claim, cluster, set));
    foreign
        .map(|(claim, set)| ForeignClaim {
            name: claim.name.clone(),
            set: set.name.clone(),
            cluster: cluster.name.clone(),
        })
        .collect()
}

/// The first of the claims that new nodes would mount that is being deleted.
pub fn going_claim<'a>(cluster: &'a Cluster, observed: &'a Observed) -> Option<&'a str> {
    let (claim, _) =
        existing_claims(cluster, observed).find(|(claim, _)| claim.is_being_deleted)?;
    Some(&claim.name)
}

fn replicas(observed: &Observed, set: &NodeSet) -> u32 {
    observed.sets.get(&set.name).map_or(0, |there| there.replicas)
}

fn is_of(claim: &SeenClaim, cluster: &Cluster, set: &NodeSet) -> bool {
    let has = |label: &str, value: &str| claim.labels.get(label).is_some_and(|is| is == value);
    has(CLUSTER, &cluster.name) && has(NODE_SET, &set.name)
}
