//! An image that is set back: before anything is done, once all pods have it, and in the middle.

use std::time::Instant;

use serde_json::json;

use super::Ladder;
use crate::pods::fixture::{ENGINE, MANAGER, OTHER};
use crate::pods::history::outcomes;
use crate::pods::nodes::observe;
use crate::pods::seen::{assert_other_containers_in_the_same_pods, seen};
use crate::support::wait::{eventually, eventually_briefly};

impl Ladder {
    /// While the cluster is paused: nothing is restarted, also once it goes on.
    pub(super) fn set_back_before_anything_is_done(&mut self) {
        let (nodes, ended) = (observe(self.fixture(), MANAGER), outcomes(self.fixture()));
        self.fixture().configure(&json!({ "paused": true }));
        self.want(OTHER);
        self.fixture().until_pending(3);
        self.want(ENGINE);
        self.fixture().until_pending(0);
        self.fixture().configure(&json!({ "paused": false }));
        let (before, after) = self.until_updated();
        assert_eq!(after, before);
        for (name, node) in observe(self.fixture(), MANAGER) {
            assert_eq!(node.run(), nodes[&name].run(), "{name} was restarted");
        }
        assert_eq!(outcomes(self.fixture()), ended);
    }

    /// When all pods have the other image: all are restarted once more. The kubelet waits ten seconds before
    /// it makes a container like an earlier one of the same pod, and that is no failure.
    pub(super) fn set_back_afterwards(&mut self) {
        self.container()["image"] = json!(ENGINE);
        let (before, after) = self.row("an image that is set back afterwards");
        assert_other_containers_in_the_same_pods(&before, &after);
        assert!(after.iter().all(|pod| pod.image == ENGINE), "{after:#?}");
    }

    /// When one pod has the other image: that node is finished, and restarted once more.
    pub(super) fn set_back_in_the_middle(&mut self) {
        let began = Instant::now();
        self.want(OTHER);
        eventually_briefly("a pod has the other image", || {
            seen(self.fixture()).iter().any(|pod| pod.image == OTHER).then_some(())
        });
        self.want(ENGINE);
        eventually("all pods have the image from before", || {
            seen(self.fixture()).iter().all(|pod| pod.image == ENGINE).then_some(())
        });
        let (before, after) = self.until_updated();
        println!("set back in the middle: {} ms", began.elapsed().as_millis());
        for (was, is) in before.iter().zip(&after) {
            assert_eq!((is.same_pod(), is.image.as_str()), (was.same_pod(), ENGINE));
        }
        let others = before.iter().zip(&after).filter(|(was, is)| was.container != is.container);
        assert!(others.count() >= 1, "{after:#?}");
    }

    fn want(&mut self, image: &str) {
        self.container()["image"] = json!(image);
        self.edit();
    }
}
