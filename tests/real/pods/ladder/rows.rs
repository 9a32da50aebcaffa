//! Labels, a config, an image and a size; an image that is set back in the middle.

use std::time::Instant;

use serde_json::{Value, json};

use super::Ladder;
use crate::pods::fixture::{ENGINE, MANAGER, OTHER};
use crate::pods::nodes::{NODES, assert_restarted_in_place, attribute, observe};
use crate::pods::seen::{assert_other_containers_in_the_same_pods, seen};
use crate::support::wait::eventually;

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
        let expected = self.set.configure("second", "");
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
        let told = ["get", "events", "--field-selector", "reason=HeapUnchanged"];
        let told = self.fixture().json(&told);
        assert_eq!(told["items"], json!([]), "{told:#}");
    }

    /// An image that is set back when one pod has it: that node is finished, and restarted once more.
    pub(super) fn set_back_in_the_middle(&mut self) {
        let began = Instant::now();
        self.container()["image"] = json!(ENGINE);
        self.edit();
        eventually("a pod has the other image", || {
            seen(self.fixture()).iter().any(|pod| pod.image == ENGINE).then_some(())
        });
        self.container()["image"] = json!(OTHER);
        self.edit();
        eventually("all pods have the image from before", || {
            seen(self.fixture()).iter().all(|pod| pod.image == OTHER).then_some(())
        });
        let (before, after) = self.until_updated();
        println!("set back in the middle: {} ms", began.elapsed().as_millis());
        for (was, is) in before.iter().zip(&after) {
            assert_eq!((is.same_pod(), is.image.as_str()), (was.same_pod(), OTHER));
        }
        let others = before.iter().zip(&after).filter(|(was, is)| was.container != is.container);
        assert!(others.count() >= 1, "{after:#?}");
    }

    /// The largest heap of each engine.
    pub(super) fn heaps(&self) -> Vec<u64> {
        let heap = |jvm: &Value| jvm["mem"]["heap_max_in_bytes"].as_u64().expect("a number");
        self.jvms().iter().map(heap).collect()
    }
}
