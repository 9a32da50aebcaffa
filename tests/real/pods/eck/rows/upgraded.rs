//! ECK that is upgraded itself: a newer one has other defaults, and so other templates. The newer one is what a checkout of its
//! repository has that `STAYPUT_ECK_NEWER` names, after `CGO_ENABLED=0 go build -o eck ./cmd` in it; `STAYPUT_ECK` can name
//! another program to begin with.

use std::path::PathBuf;

use serde_json::json;

use crate::pods::eck::edits::Edits;
use crate::pods::eck::operator;
use crate::pods::eck::stage::Stage;
use crate::support::skip;
use crate::support::wait::eventually;

/// By this option ECK writes no security context, which only another pod can lose.
const OTHER_DEFAULTS: &str = "--set-default-security-context=false";

#[test]
#[ignore = "needs a checkout of a newer ECK; CONTRIBUTING.md"]
fn edits_arrive_beside_an_eck_that_is_upgraded() {
    const TEST: &str = "pods::eck::rows::upgraded::edits_arrive_beside_an_eck_that_is_upgraded";
    let newer = match operator::newer() {
        Ok(newer) => newer,
        Err(why) => return skip(TEST, &why),
    };
    let Some(mut edits) = Edits::as_documented(TEST) else { return };
    edits.upgrade_eck(&newer);
    edits.resume();
    for (was, is) in edits.settle() {
        assert_eq!(is.pod.same_pod(), was.pod.same_pod());
    }
    edits.edit_as_documented();
    edits.trigger_while_the_reconciler_is_killed();
    edits.go_back();
}

/// From ECK 3.4 to 3.5 the script that makes the keystore is another one.
#[test]
#[ignore = "needs two checkouts of ECK; CONTRIBUTING.md"]
fn an_upgrade_that_asks_for_other_pods_waits_for_a_person() {
    const TEST: &str =
        "pods::eck::rows::upgraded::an_upgrade_that_asks_for_other_pods_waits_for_a_person";
    let newer = match operator::newer() {
        Ok(newer) => newer,
        Err(why) => return skip(TEST, &why),
    };
    let Some(stage) = Stage::set_up(TEST) else { return };
    stage.carry_out();
    let mut edits = Edits::begin(stage);
    edits.secure_setting();
    edits.fixture().configure(&json!({ "update": { "allow": null } }));
    edits.upgrade_eck(&newer);
    edits.resume();
    let message = edits.until_told();
    println!("{message}");
    assert!(message.contains("initContainers"), "{message}");
    for (was, is) in edits.compare() {
        assert_eq!(is, was, "nothing is done by itself");
    }
    edits.assert_none_lost();
}

impl Edits {
    /// `diff` and the status show it, and nobody does anything.
    pub(super) fn eck_with_other_defaults(&mut self) {
        let revision = self.stage.revision();
        self.stage.operator.kill();
        self.stage.operator.start_with(&[OTHER_DEFAULTS]);
        self.stage.until_another_revision(&revision);
        let message = self.until_told();
        println!("other defaults of ECK: {message}");
        assert!(message.contains("securityContext"), "{message}");
        let diff = self.fixture().people.run("kubectl stayput -n search diff logs");
        println!("{diff}");
        assert!(diff.contains("securityContext"), "{diff}");
        self.stage.operator.kill();
        self.stage.operator.start_again();
        for (was, is) in self.settle() {
            assert_eq!(is, was, "nothing was done");
        }
    }

    /// As `docs/operators.md` says: paused, so that its templates are seen before anything happens.
    fn upgrade_eck(&mut self, [program, definitions]: &[PathBuf; 2]) {
        self.fixture().people.run("kubectl stayput --namespace search pause logs");
        self.stage.operator.kill();
        self.stage.operator = operator::run(self.fixture(), program, definitions);
        self.stage.until_observed();
        println!("{}", self.fixture().people.run("kubectl stayput --namespace search diff logs"));
        for (was, is) in self.compare() {
            assert_eq!(is, was, "while paused nothing is done");
        }
    }

    fn resume(&self) {
        self.fixture().people.run("kubectl stayput --namespace search resume logs");
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
