//! Checks `spec.nodeSets`, and the fields that must not be written beside it.

use super::Problems;
use crate::cluster::SearchCluster;
use stayput_declare as declare;

impl Problems {
    /// Checks the fields of a declared cluster, in the spec as it is written.
    pub(super) fn declared(&mut self, cluster: &SearchCluster) {
        let spec = &cluster.spec;
        if !cluster.is_declared() {
            let engine = &spec.engine;
            let declared = [
                ("distribution", engine.distribution.is_some()),
                ("version", engine.version.is_some()),
                ("image", engine.image.is_some()),
            ];
            for (field, _) in declared.into_iter().filter(|(_, is_written)| *is_written) {
                self.add(
                    format!("engine.{field}"),
                    "is for spec.nodeSets: without them it is read from the engine. Take it out",
                );
            }
            if engine.warm {
                self.add(
                    "engine.warm",
                    "is for spec.nodeSets: into pods that are made elsewhere, kubectl stayput inject \
                     --warm writes what makes the archive. Take it out",
                );
            }
            return;
        }
        // The pods of the completed spec are ours, and so no mistake.
        if !spec.pods.is_unset() && spec.pods != cluster.completed_spec().pods {
            self.add("pods", "is for nodes that are made elsewhere: take it or nodeSets out");
        }
        match cluster.declaration("") {
            Some(declaration) => {
                for refusal in declare::check(&declaration) {
                    self.0.push(super::Invalid { field: refusal.field, problem: refusal.problem });
                }
            }
            None => self.add(
                "engine",
                "does not say what to run: write distribution (elasticsearch or opensearch) and \
                 version (such as 2.19.3)",
            ),
        }
    }
}
