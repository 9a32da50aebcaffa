//! ECK 3.5 is upgraded under a cluster whose edits are carried out in place: to what a checkout of its repository has that
//! `STAYPUT_ECK_NEWER` names, after `CGO_ENABLED=0 go build -o eck ./cmd` in it.

use std::path::Path;

use serde_json::json;

use super::edits::Edits;
use super::operator;
use super::stage::Stage;
use crate::support::skip;
use crate::support::wait::eventually;

#[test]
#[ignore = "needs a checkout of a newer ECK; CONTRIBUTING.md"]
fn edits_arrive_beside_an_eck_that_is_upgraded() {
    const TEST: &str = "pods::eck::newer::edits_arrive_beside_an_eck_that_is_upgraded";
    let newer = match operator::newer() {
        Ok(newer) => newer,
        Err(why) => return skip(TEST, &why),
    };
    let Some(mut edits) = Edits::as_documented(TEST) else { return };
    edits.upgrade_eck(&newer.each_ref().map(|path| path.as_path()));
    edits.edit_as_documented();
    edits.trigger_while_the_reconciler_is_killed();
    edits.go_back();
}

impl Edits {
    /// As `docs/operators.md` says: paused, so that its templates are seen before anything happens.
    fn upgrade_eck(&mut self, [program, definitions]: &[&Path; 2]) {
        self.fixture().people.run("kubectl stayput --namespace search pause logs");
        self.stage.operator.kill();
        self.stage.operator = operator::run(self.fixture(), program, definitions);
        self.stage.until_observed();
        println!("{}", self.fixture().people.run("kubectl stayput --namespace search diff logs"));
        for (was, is) in self.compare() {
            assert_eq!(is, was, "while paused nothing is done");
        }
        self.fixture().people.run("kubectl stayput --namespace search resume logs");
        for (was, is) in self.settle() {
            assert_eq!(is.pod.same_pod(), was.pod.same_pod());
        }
    }
}

impl Stage {
    /// Waits until ECK has worked on the cluster: it notes the generation of a change that asks nothing of any pod.
    fn until_observed(&self) {
        let surge = "/spec/updateStrategy/changeBudget/maxSurge";
        self.edit(&json!([{ "op": "add", "path": surge, "value": 1 }]));
        eventually("ECK has worked on the cluster", || {
            let eck = self.elasticsearch();
            (eck["status"]["observedGeneration"] == eck["metadata"]["generation"]).then_some(())
        });
    }
}
