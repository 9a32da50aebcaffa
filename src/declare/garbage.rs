//! Config Secrets of node sets that are gone.

use std::collections::BTreeMap;

use crate::{Cluster, Observed};

/// For how long nobody must have needed a Secret before it is deleted, in milliseconds.
const UNNEEDED_FOR: u64 = 15 * 60 * 1000;

/// A Secret that this SearchCluster owns and that carries its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenSecret {
    /// Name of the Secret.
    pub name: String,
    /// uid of the Secret.
    pub uid: String,
    /// The node set in its label.
    pub node_set: String,
    /// True if a pod mounts the Secret.
    pub mounted: bool,
}

/// The Secrets to delete now, and the time since which each is not needed, by uid. `since` is the map
/// that the last call returned.
pub fn garbage<'a>(
    cluster: &Cluster,
    observed: &Observed,
    seen: &'a [SeenSecret],
    since: &BTreeMap<String, u64>,
    now: u64,
) -> (Vec<&'a SeenSecret>, BTreeMap<String, u64>) {
    let is_declared = |name: &str| cluster.node_sets.iter().any(|set| set.name == name);
    let unneeded = seen.iter().filter(|secret| {
        let set = secret.node_set.as_str();
        !secret.mounted && !is_declared(set) && !observed.sets.contains_key(set)
    });
    let (mut due, mut known) = (Vec::new(), BTreeMap::new());
    for secret in unneeded {
        let first = since.get(&secret.uid).copied().unwrap_or(now);
        known.insert(secret.uid.clone(), first);
        if now.saturating_sub(first) >= UNNEEDED_FOR {
            due.push(secret);
        }
    }
    (due, known)
}
