//! The data directories that the engine of each pod reports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::pods::PodFacts;
use stayput_engine::Node;

/// Last reported data directories of each pod's engine, by uid. An engine that ended has its data there
/// still.
#[derive(Debug, Default)]
pub(super) struct DataPaths(BTreeMap<String, Vec<String>>);

impl DataPaths {
    /// Records the directories of the nodes that the engine lists, and forgets pods that are gone. Two nodes
    /// may have one name: then the directories of both count.
    pub(super) fn remember(&mut self, pods: &[Arc<PodFacts>], nodes: &[Node]) {
        let there: BTreeSet<&str> = pods.iter().map(|facts| facts.uid.as_str()).collect();
        self.0.retain(|uid, _| there.contains(uid.as_str()));
        let mut told: BTreeMap<&str, BTreeSet<&String>> = BTreeMap::new();
        for node in nodes.iter().filter(|node| !node.data_paths.is_empty()) {
            told.entry(&node.name).or_default().extend(&node.data_paths);
        }
        for facts in pods {
            if let Some(paths) = told.get(facts.node.as_str()) {
                self.0.insert(facts.uid.clone(), paths.iter().copied().cloned().collect());
            }
        }
    }

    /// The data directories of this pod's engine; empty until it reports them.
    pub(super) fn of(&self, uid: &str) -> &[String] {
        self.0.get(uid).map(Vec::as_slice).unwrap_or_default()
    }
}
