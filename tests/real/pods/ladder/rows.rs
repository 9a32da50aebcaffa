//! Labels, a config, an image and a size.

use serde_json::{Value, json};

use super::Ladder;
use crate::pods::fixture::{MANAGER, OTHER};
use crate::pods::nodes::{NODES, assert_restarted_in_place, attribute, observe};
use crate::pods::opensearch::Jvm;
use crate::pods::seen::{assert_other_containers_in_the_same_pods, seen};

impl Ladder {
    /// Labels: nothing is restarted.
    pub(super) fn labels(&mut self) {
        self.template["metadata"]["labels"]["team"] = json!("a");
        let (before, after) = self.row("labels");
        assert_eq!(after, before);
        let path = "jsonpath={.items[*].metadata.labels.team}";
        let teams = self.fixture().run(&["get", "pods", "--selector=app=logs", "--output", path]);
        assert_eq!(teams, "a a a");
    }

    /// A changed Secret: other processes in the same containers.
    pub(super) fn config(&self) {
        let before = observe(self.fixture(), MANAGER);
        let expected = self.set.configure("second", Jvm::Warm);
        self.restart("config");
        self.set.until_green();
        let after = observe(self.fixture(), MANAGER);
        assert_restarted_in_place(&before, &after, |_| expected.clone());
        assert_eq!(attribute(&after, "round"), vec![json!("second"); NODES.len()]);
        assert_eq!(seen(self.fixture()), self.pods);
    }

    /// Another name of the image: another container in the same pod.
    pub(super) fn image(&mut self) {
        self.container()["image"] = json!(OTHER);
        let (before, after) = self.row("image");
        assert_other_containers_in_the_same_pods(&before, &after);
        assert!(after.iter().all(|pod| pod.image == OTHER), "{after:#?}");
    }

    /// More memory: the same containers, and heaps that follow.
    pub(super) fn size(&mut self) {
        let small = self.heaps();
        for kind in ["requests", "limits"] {
            self.container()["resources"][kind]["memory"] = json!("900Mi");
        }
        let (before, after) = self.row("size");
        for (was, is) in before.iter().zip(&after) {
            assert_eq!((is.same_pod(), &is.container), (was.same_pod(), &was.container));
        }
        assert!(after.iter().all(|pod| pod.memory == "900Mi"), "{after:#?}");
        let large = self.heaps();
        println!("heaps: {small:?}, then {large:?}");
        assert!(small.iter().max() < large.iter().min(), "{small:?}, then {large:?}");
        let told = self.fixture().read("events?fieldSelector=reason%3DHeapUnchanged");
        assert_eq!(told["items"], json!([]), "{told:#}");
    }

    /// The largest heap of each engine.
    pub(super) fn heaps(&self) -> Vec<u64> {
        let heap = |jvm: &Value| jvm["mem"]["heap_max_in_bytes"].as_u64().expect("a number");
        self.jvms().iter().map(heap).collect()
    }
}
