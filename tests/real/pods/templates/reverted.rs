//! A template that is set back: before anything is done, in the middle, and afterwards.

use serde_json::json;

use super::stage::Stage;
use crate::pods::fixture::{ENGINE, OTHER};
use crate::pods::history::outcomes;
use crate::pods::seen::{Seen, seen};
use crate::support::wait::eventually;

#[test]
fn whenever_a_template_is_set_back_the_pods_end_with_it() {
    let test = "pods::templates::reverted::whenever_a_template_is_set_back_the_pods_end_with_it";
    let Some(mut stage) = Stage::set_up(test) else { return };
    stage.before_anything_is_done();
    stage.in_the_middle();
    stage.afterwards();
    // The first one left out the nodes that had their template again before their turn.
    assert_eq!(outcomes(&stage.fixture), "done done done done");
}

impl Stage {
    /// Nothing is stopped.
    fn before_anything_is_done(&mut self) {
        self.fixture.configure(&json!({ "paused": true }));
        self.want(OTHER);
        self.fixture.until_pending(3);
        self.want(ENGINE);
        self.fixture.until_pending(0);
        self.fixture.configure(&json!({ "paused": false }));
        let (before, after) = self.until_all_have(ENGINE);
        assert_eq!(after, before);
        assert_eq!(outcomes(&self.fixture), "");
    }

    /// The node that has the other image already is finished, and restarted once more.
    fn in_the_middle(&mut self) {
        self.want(OTHER);
        eventually("a pod has the other image", || {
            seen(&self.fixture).iter().any(|pod| pod.image == OTHER).then_some(())
        });
        self.want(ENGINE);
        let (before, after) = self.until_all_have(ENGINE);
        for (was, is) in before.iter().zip(&after) {
            assert_eq!(is.same_pod(), was.same_pod());
        }
        let others = before.iter().zip(&after).filter(|(was, is)| was.container != is.container);
        assert!(others.count() >= 1, "{after:#?}");
    }

    /// All are restarted once more.
    fn afterwards(&mut self) {
        for image in [OTHER, ENGINE] {
            self.want(image);
            let (before, after) = self.until_all_have(image);
            self.assert_other_containers_in_the_same_pods(&before, &after);
        }
    }

    fn want(&mut self, image: &str) {
        self.container()["image"] = json!(image);
        self.edit();
    }

    /// The pods before, and once they all have this image, also by their labels, and serve.
    fn until_all_have(&mut self, image: &str) -> (Vec<Seen>, Vec<Seen>) {
        eventually(&format!("all pods have {image}"), || {
            let pods = seen(&self.fixture);
            (pods.iter().all(|pod| pod.image == image)).then_some(())
        });
        self.until_updated()
    }
}
