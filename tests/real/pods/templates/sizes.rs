//! Another size of the engine's container, by `pods/resize`.

use std::time::Instant;

use super::stage::Stage;
use crate::pods::seen::Seen;
use crate::pods::stateful_set::status;

#[test]
fn another_size_comes_to_the_pods_that_exist_or_not_at_all() {
    let test = "pods::templates::sizes::another_size_comes_to_the_pods_that_exist_or_not_at_all";
    let Some(mut stage) = Stage::set_up(test) else { return };
    assert_eq!(sizes(&stage.pods), ["64Mi"; 3]);
    let (before, after) = stage.resize("96Mi");
    stage.assert_other_containers_in_the_same_pods(&before, &after);
    assert_eq!(sizes(&after), ["96Mi"; 3]);

    stage.size_that_no_node_has();
    assert_eq!(stage.outcomes(), "done aborted");
}

impl Stage {
    /// Gives each container this much memory.
    fn resize(&mut self, memory: &str) -> (Vec<Seen>, Vec<Seen>) {
        self.want_memory(memory);
        self.row(&format!("size {memory}"))
    }

    /// The first node comes back with the size that it had, and the others are not stopped.
    fn size_that_no_node_has(&mut self) {
        let began = Instant::now();
        self.want_memory("100Gi");
        self.edit();
        let entry = self.until_ended("aborted");
        println!("a size that is too large: {} ms: {entry}", began.elapsed().as_millis());
        let reason = entry["reason"].as_str().expect("a reason");
        assert!(reason.contains("cannot give it the new size"), "{reason}");
        assert!(reason.contains("didn't have enough capacity"), "{reason}");
        let (before, after) = self.until_serving();
        let others = before.iter().zip(&after).filter(|(was, is)| was.container != is.container);
        assert_eq!(others.count(), 1, "one node was stopped: {after:#?}");
        for (was, is) in before.iter().zip(&after) {
            assert_eq!(is.same_pod(), was.same_pod());
        }
        assert_eq!(sizes(&after), ["96Mi"; 3]);
        assert_eq!(status(&self.fixture)["updatedReplicas"], serde_json::Value::Null);

        let (_, again) = self.resize("96Mi");
        assert_eq!(again, after, "all have it, and nothing is restarted");
    }
}

/// The limit that the kubelet has put into effect for each container.
fn sizes(pods: &[Seen]) -> Vec<&str> {
    pods.iter().map(|pod| pod.memory.as_str()).collect()
}
