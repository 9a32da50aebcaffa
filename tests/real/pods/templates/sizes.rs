//! Another size of the engine's container, by `pods/resize`: the same container has it.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::Value;

use super::stage::Stage;
use crate::pods::fixture::MANAGER;
use crate::pods::history::{outcomes, until_ended};
use crate::pods::nodes::observe;
use crate::pods::seen::Seen;
use crate::pods::stateful_set::status;

#[test]
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
    assert_eq!(outcomes(&stage.fixture), "done done rolledBack");
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

    /// The first node comes back with the size that it had, and the others are not stopped.
    fn size_that_no_node_has(&mut self) {
        let began = Instant::now();
        let engines = self.engines();
        self.want_memory("100Gi");
        self.edit();
        let entry = until_ended(&self.fixture, "rolledBack");
        println!("a size that is too large: {} ms: {entry}", began.elapsed().as_millis());
        let reason = entry["reason"].as_str().expect("a reason");
        assert!(reason.contains("cannot give it the new size"), "{reason}");
        assert!(reason.contains("didn't have enough capacity"), "{reason}");
        let (before, after) = self.until_serving();
        let others = self.engines();
        let restarted = engines.iter().filter(|(name, id)| others[*name] != **id);
        assert_eq!(restarted.count(), 1, "one node was stopped: {engines:?} {others:?}");
        for (was, is) in before.iter().zip(&after) {
            assert_eq!((is.same_pod(), &is.container), (was.same_pod(), &was.container));
        }
        assert_eq!(sizes(&after), ["64Mi"; 3]);
        assert_eq!(status(&self.fixture)["updatedReplicas"], Value::Null);

        let (_, again) = self.resize("64Mi");
        assert_eq!(again, after, "all have it, and nothing is restarted");
    }
}

/// The limit that the kubelet has put into effect for each container.
fn sizes(pods: &[Seen]) -> Vec<&str> {
    pods.iter().map(|pod| pod.memory.as_str()).collect()
}
