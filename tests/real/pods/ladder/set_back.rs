//! An image that is set back: before anything is done, and in the middle.

use std::time::Instant;

use serde_json::json;

use super::Ladder;
use crate::pods::fixture::{ENGINE, MANAGER, OTHER};
use crate::pods::history::outcomes;
use crate::pods::nodes::observe;
use crate::pods::seen::seen;
use crate::support::wait::eventually;

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

    /// When one pod has the other image: that node is finished, and restarted once more.
    pub(super) fn set_back_in_the_middle(&mut self) {
        let began = Instant::now();
        self.want(ENGINE);
        eventually("a pod has the other image", || {
            seen(self.fixture()).iter().any(|pod| pod.image == ENGINE).then_some(())
        });
        self.want(OTHER);
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

    fn want(&mut self, image: &str) {
        self.container()["image"] = json!(image);
        self.edit();
    }
}
