//! How a cluster forms: by an election among the first masters, once, and never again.
//!
//! Their names are in a ConfigMap and reach the config by a variable of the container. The config itself
//! stays the same when they are emptied, so that no node is restarted for it; engines leave out a
//! setting whose value is empty. A container that is made later has no names, and can only join.

use serde_json::{Value, json};
use stayput_pod_update::IGNORE;

use crate::claims::existing_claims;
use crate::cluster::roles;
use crate::object::{bootstrap as bootstrap_name, metadata, stateful_set_name};
use crate::{Cluster, Kind, Object, Observed, Refusal};

/// The container's variable with the names of the first masters, and their key in the ConfigMap.
pub(crate) const VARIABLE: &str = "INITIAL_MASTER_NODES";
/// The key in the ConfigMap with the names of claims.
const CLAIMS: &str = "claims";

/// How a cluster forms, as it is written in the ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bootstrap {
    /// A majority of these nodes elects the first master.
    Masters(Vec<String>),
    /// The nodes come back with the data on these volume claims, which existed before them. No first
    /// masters are named: masters without data would form an empty cluster beside it.
    Claims(Vec<String>),
    /// The cluster has formed, and no node may form another one.
    Formed,
}

impl Bootstrap {
    /// Reads the ConfigMap.
    pub fn of(config_map: &Value) -> Self {
        let list = |key: &str| -> Vec<String> {
            let written = config_map["data"][key].as_str().unwrap_or_default();
            written.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let (masters, claims) = (list(VARIABLE), list(CLAIMS));
        if !masters.is_empty() {
            Self::Masters(masters)
        } else if !claims.is_empty() {
            Self::Claims(claims)
        } else {
            Self::Formed
        }
    }

    /// How the cluster is to form. The first value that was written stays until the cluster has formed:
    /// nodes that start with different names could form two clusters.
    pub(crate) fn wanted(cluster: &Cluster, observed: &Observed) -> Self {
        if observed.formed || cluster.engine.has_minimum_master_nodes() {
            return Self::Formed;
        }
        match &observed.bootstrap {
            Some(written) => written.clone(),
            // Written before any StatefulSet: it was lost since. Nodes that are there have formed one.
            None if !observed.sets.is_empty() => Self::Formed,
            None => {
                let claims = existing_claims(cluster, observed);
                let mut claims: Vec<String> = claims.map(|(claim, _)| claim.name.clone()).collect();
                if claims.is_empty() {
                    return Self::Masters(masters(cluster).collect());
                }
                claims.sort();
                Self::Claims(claims)
            }
        }
    }

    /// True if nodes may still form a cluster, as far as is known.
    pub fn is_forming(&self) -> bool {
        *self != Self::Formed
    }
}

/// The names of all master-eligible nodes.
fn masters(cluster: &Cluster) -> impl Iterator<Item = String> {
    let sets = cluster.sorted().into_iter().filter(|set| roles(set).master);
    sets.flat_map(|set| {
        let name = stateful_set_name(&cluster.name, &set.name);
        (0..set.count).map(move |ordinal| format!("{name}-{ordinal}"))
    })
}

/// Refuses to remove a node set with first masters before they have elected one: no others can.
pub(crate) fn lost_masters(cluster: &Cluster, observed: &Observed) -> Option<Refusal> {
    let Bootstrap::Masters(first) = Bootstrap::wanted(cluster, observed) else { return None };
    let is_declared = |name: &str| {
        cluster.node_sets.iter().filter(|set| roles(set).master).any(|set| {
            let stateful_set = stateful_set_name(&cluster.name, &set.name);
            name.rsplit_once('-').is_some_and(|(set, _)| set == stateful_set)
        })
    };
    let lost = first.iter().find(|name| !is_declared(name))?;
    let problem = format!(
        "the cluster has not formed yet, and no master is elected without {lost}: declare its node set \
         with masters until it has formed. If it never can, begin again: docs/declared.md, \
         {NEVER_FORMED}"
    );
    Some(Refusal::new("spec.nodeSets", problem))
}

/// The chapter of `docs/declared.md` about the way out.
pub const NEVER_FORMED: &str = "\"A cluster that has not formed\"";

pub(crate) fn config_map(cluster: &Cluster, bootstrap: &Bootstrap) -> Object {
    let name = bootstrap_name(&cluster.name);
    let mut metadata = metadata(cluster, &name, None);
    metadata["annotations"] = json!({ IGNORE: "true" });
    let data = match bootstrap {
        Bootstrap::Masters(masters) => json!({ VARIABLE: masters.join(",") }),
        Bootstrap::Claims(claims) => json!({ VARIABLE: "", CLAIMS: claims.join(",") }),
        Bootstrap::Formed => json!({ VARIABLE: "" }),
    };
    let body = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": data,
    });
    Object { kind: Kind::ConfigMap, name, body }
}

/// The variable of the engine's container, as an entry of `env`.
pub(crate) fn variable(cluster: &Cluster) -> Value {
    let from = json!({ "name": bootstrap_name(&cluster.name), "key": VARIABLE });
    json!({ "name": VARIABLE, "valueFrom": { "configMapKeyRef": from } })
}
