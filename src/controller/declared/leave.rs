//! The node sets from which nodes leave: input of a step of `stayput_restart::plan`.

use std::collections::BTreeMap;

use stayput_declare::{self as declare, ObservedSet};
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{NodeSet, NodeSets};

use crate::apiserver::Apiserver;
use crate::declared::objects::{ExistingObjects, Version, remove, scale};
use crate::failure::Failure;

/// The node sets of a declared cluster from which nodes leave, and their StatefulSets as they were read.
#[derive(Debug)]
pub(crate) struct ShrinkingSets {
    pub(crate) node_sets: NodeSets,
    namespace: String,
    objects: BTreeMap<String, Version>,
}

impl ShrinkingSets {
    /// Lowers the count of a node set, if its StatefulSet is still the one that was read.
    pub(crate) async fn remove_node(
        &self,
        api: &Apiserver,
        set: &str,
        replicas: u32,
    ) -> Result<(), Failure> {
        Ok(scale(api, &self.namespace, self.object(set)?, replicas).await?)
    }

    /// Deletes the StatefulSet of a node set, if it is still the one that was read.
    pub(crate) async fn remove_set(&self, api: &Apiserver, set: &str) -> Result<(), Failure> {
        Ok(remove(api, &self.namespace, self.object(set)?).await?)
    }

    fn object(&self, set: &str) -> Result<&Version, Failure> {
        self.objects.get(set).ok_or(Failure::StatusOvertaken)
    }
}

/// The existing node sets, if nodes leave them or something is owed. Without a declaration, such as while the
/// SearchCluster is being deleted, every node stays, and changes for nodes that were about to leave are undone.
/// `unfinished` says why not all declared objects are made yet.
pub(super) fn shrinking_sets(
    cluster: &SearchCluster,
    declaration: Option<&declare::Cluster>,
    existing: ExistingObjects,
    unfinished: Option<String>,
) -> Option<ShrinkingSets> {
    let ExistingObjects { observed, objects } = existing;
    let set = |(name, there): (&String, &ObservedSet)| {
        let count = match declaration {
            Some(declared) => {
                declared.node_sets.iter().find(|set| set.name == *name).map(|set| set.count)
            }
            None => Some(there.replicas),
        };
        Some(NodeSet {
            name: name.clone(),
            stateful_set: objects.get(name)?.name.clone(),
            replicas: there.replicas,
            wanted: count.unwrap_or(0).min(there.replicas),
            is_declared: count.is_some(),
        })
    };
    let sets: Vec<NodeSet> = observed.sets.iter().filter_map(set).collect();
    let is_concerned = owes(cluster) || sets.iter().any(NodeSet::shrinks);
    let node_sets = NodeSets { sets, unfinished, ..NodeSets::default() };
    let namespace = cluster.metadata.namespace.clone().unwrap_or_default();
    is_concerned.then_some(ShrinkingSets { node_sets, namespace, objects })
}

/// True if an engine setting for nodes that leave is still to be undone.
pub(super) fn owes(cluster: &SearchCluster) -> bool {
    let status = cluster.status.as_ref();
    status.is_some_and(|status| !status.ledger.debts.leaving.is_empty())
}
