//! Where the engine of each pod has said that its data is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::controller::pods::Facts;
use crate::engine_client::Node;

/// The directories that the engine of each pod has named last, by uid. One that ended has its data there still.
#[derive(Debug, Default)]
pub(super) struct DataPaths(BTreeMap<String, Vec<String>>);

impl DataPaths {
    /// Takes what the nodes that the engine lists say, and forgets pods that are gone. Two nodes may have one name:
    /// then the directories of both count.
    pub(super) fn remember(&mut self, pods: &[Arc<Facts>], nodes: &[Node]) {
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

    /// The directories of this pod's engine; none if it has not named them.
    pub(super) fn of(&self, uid: &str) -> &[String] {
        self.0.get(uid).map(Vec::as_slice).unwrap_or_default()
    }
}
