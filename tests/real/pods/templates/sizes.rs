//! Another size of the engine's container, by `pods/resize`: the same container has it.

use std::collections::BTreeMap;

use super::stage::Stage;
use crate::pods::fixture::MANAGER;
use crate::pods::history::outcomes;
use crate::pods::nodes::observe;
use crate::pods::seen::Seen;

#[test] // proves UPDATE-21
fn another_size_comes_to_the_pods_that_exist_or_not_at_all() {
    let test = "pods::templates::sizes::another_size_comes_to_the_pods_that_exist_or_not_at_all";
    let Some(mut stage) = Stage::set_up(test) else { return };
    assert_eq!(sizes(&stage.pods), ["64Mi"; 3]);
    for size in ["96Mi", "64Mi"] {
        let engines = stage.engines();
        let (before, after) = stage.resize(size);
        assert_eq!(sizes(&after), [size; 3]);
        for (was, is) in before.iter().zip(&after) {
            assert_eq!((is.same_pod(), &is.container), (was.same_pod(), &was.container));
        }
        let others = stage.engines();
        assert!(engines.iter().all(|(name, id)| others[name] != *id), "{engines:?} {others:?}");
    }

    stage.size_that_no_node_has();
    let outcomes = outcomes(&stage.fixture);
    assert!(outcomes.starts_with("done done") && !outcomes.contains("rolledBack"), "{outcomes}");
}

impl Stage {
    /// Gives each container this much memory.
    fn resize(&mut self, memory: &str) -> (Vec<Seen>, Vec<Seen>) {
        self.want_memory(memory);
        self.row(&format!("size {memory}"))
    }

    /// The run of each node's engine.
    fn engines(&self) -> BTreeMap<String, String> {
        let nodes = observe(&self.fixture, MANAGER);
        nodes.into_iter().map(|(name, node)| (name, node.run().to_owned())).collect()
    }

    /// No node is stopped for it, and once it is set back nothing is left to do.
    fn size_that_no_node_has(&mut self) {
        let engines = self.engines();
        self.want_memory("100Gi");
        self.edit();
        self.until_would_not_fit(|says| says.contains("has no room for the new size"));
        assert_eq!(self.engines(), engines, "no node was stopped");
        self.want_memory("64Mi");
        self.edit();
        self.fixture.until_pending(0);
        let (before, after) = self.until_updated();
        assert_eq!(before, after, "all have it, and nothing is restarted");
        assert_eq!(self.engines(), engines);
    }
}

/// The limit that the kubelet has put into effect for each container.
fn sizes(pods: &[Seen]) -> Vec<&str> {
    pods.iter().map(|pod| pod.memory.as_str()).collect()
}
