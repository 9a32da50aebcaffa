//! All else that a person does to an `Elasticsearch`, or to what carries its edits out, one after the other on one
//! cluster.

mod another_pod;
mod middle;
mod sets;
mod upgraded;

use serde_json::json;

use super::edits::{Edits, Engine};
use super::stage::Stage;
use crate::support::wait::eventually;

#[test]
#[ignore = "twenty minutes; CONTRIBUTING.md"]
fn what_a_person_edits_beside_eck_row_by_row() {
    const TEST: &str = "pods::eck::rows::what_a_person_edits_beside_eck_row_by_row";
    let Some(stage) = Stage::set_up(TEST) else { return };
    stage.carry_out();
    let mut edits = Edits::begin(stage);
    let rows: [fn(&mut Edits); 13] = [
        Edits::label,
        Edits::search_cluster_deleted_in_the_middle,
        Edits::eck_with_other_defaults,
        Edits::count_up_and_down,
        Edits::two_node_sets,
        Edits::secure_setting,
        Edits::another_secure_setting,
        Edits::image_left_to_eck,
        Edits::phase_on_the_elasticsearch,
        Edits::wrong_and_repaired,
        Edits::set_back_in_the_middle,
        Edits::edited_again_in_the_middle,
        Edits::another_budget_in_the_middle,
    ];
    for row in rows {
        row(&mut edits);
    }
    edits.assert_none_lost();
}

impl Edits {
    /// Nothing is restarted.
    fn label(&mut self) {
        let path = "/spec/nodeSets/0/podTemplate/metadata/labels/team";
        self.untouched("a label", |stage| {
            stage.edit(&json!([{ "op": "add", "path": path, "value": "a" }]));
        });
        let labels = self.fixture().pods();
        assert!(labels.iter().all(|pod| pod["metadata"]["labels"]["team"] == "a"), "{labels:#?}");
    }

    /// A phase where ECK's users write it is a request.
    fn phase_on_the_elasticsearch(&mut self) {
        self.restarted("a phase on the Elasticsearch", |stage| {
            let phase = "elasticsearch.k8s.elastic.co/restart-phase=schedule-rolling";
            stage.fixture.run(&["annotate", "elasticsearch", "logs", phase]);
        });
    }

    /// Makes an edit that gives the set another revision; no process is another one then.
    fn untouched(&mut self, what: &str, edit: impl FnOnce(&mut Stage)) {
        let revision = self.stage.revision();
        edit(&mut self.stage);
        self.stage.until_another_revision(&revision);
        println!("{what}: there is another revision");
        for (was, is) in self.settle() {
            assert_eq!(is, was, "{what}");
        }
    }
}

/// Checks that all are the pods from before.
#[track_caller]
fn assert_same_pods(pairs: &[(Engine, Engine)]) {
    for (was, is) in pairs {
        assert_eq!(is.pod.same_pod(), was.pod.same_pod());
    }
}

/// Checks that each is another pod on the claim from before.
#[track_caller]
fn assert_other_pods(pairs: &[(Engine, Engine)]) {
    for (was, is) in pairs {
        assert_ne!(is.pod.uid, was.pod.uid, "{}", is.pod.name);
        assert_eq!(is.pod.claim, was.pod.claim, "{}", is.pod.name);
    }
}

impl Stage {
    /// The newest revision of the first node set.
    fn revision(&self) -> String {
        let set = self.fixture.read("statefulsets/logs-es-default");
        set["status"]["updateRevision"].as_str().expect("a revision").to_owned()
    }

    fn until_another_revision(&self, before: &str) {
        eventually("there is another revision", || (self.revision() != before).then_some(()));
    }
}
