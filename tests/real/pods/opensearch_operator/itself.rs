//! The operator itself, which is on no registry: from a checkout of its repository that `STAYPUT_OPENSEARCH_OPERATOR` names,
//! after `go build -o operator .` in its folder `opensearch-operator`.

mod operator;
mod stage;

use std::time::Instant;

use serde_json::{Value, json};

use self::stage::Stage;
use crate::pods::clients::{Clients, document};
use crate::pods::door::Door;
use crate::pods::history::{history, until_another_ended};
use crate::pods::official::IMAGE;
use crate::pods::seen::{Seen, assert_other_containers_in_the_same_pods, attributes, seen};
use crate::support::wait::eventually;

/// Another name of the same image.
const OTHER_IMAGE: &str = "stayput.test/opensearchproject/opensearch:2.19.3-1";

#[test]
#[ignore = "needs a checkout of the operator; CONTRIBUTING.md"]
fn edits_arrive_in_the_same_pods_beside_the_operator_itself() {
    const TEST: &str = "pods::opensearch_operator::itself::\
                        edits_arrive_in_the_same_pods_beside_the_operator_itself";
    let Some(mut stage) = Stage::set_up(TEST) else { return };
    stage.fixture.cluster.images.tag(IMAGE, OTHER_IMAGE);
    let first = seen(&stage.fixture);
    let clients = Clients::start(&stage.fixture, Door::plain());

    // Without the policy: who comes first, the operator or the labels?
    let round = json!({ "general": { "additionalConfig": { "node.attr.round": "second" } } });
    edit(&stage, "a setting", &round);
    assert_eq!(attributes(&stage.fixture, "round"), ["second"; 3]);

    stage.keep_pods();
    let before = seen(&stage.fixture);
    let round = json!({ "general": { "additionalConfig": { "node.attr.round": "third" } } });
    edit(&stage, "a setting, with the policy", &round);
    assert_eq!(attributes(&stage.fixture, "round"), ["third"; 3]);
    assert_other_containers_in_the_same_pods(&before, &seen(&stage.fixture));

    wrong_and_taken_back(&stage);
    edited_while_the_operator_was_away(&mut stage);

    let before = seen(&stage.fixture);
    edit(&stage, "a variable", &stage.with_variable("TEAM", "search"));
    same_containers(&before, &seen(&stage.fixture));
    assert_eq!(stage.environment("TEAM"), ["search"; 3]);

    let before = seen(&stage.fixture);
    edit(&stage, "memory", &stage.with_memory("1200Mi"));
    let after = seen(&stage.fixture);
    same_containers(&before, &after);
    assert!(after.iter().all(|pod| pod.memory == "1200Mi"), "{after:#?}");

    let before = seen(&stage.fixture);
    stage.edit(&stage.with_label("team", "search"));
    let labels = ["get", "pods", "--selector=team=search", "--output=name"];
    eventually("all pods have the label", || {
        (stage.fixture.run(&labels).lines().count() == 3).then_some(())
    });
    stage.until_operator_is_content();
    same_containers(&before, &seen(&stage.fixture));

    // The operator has other steps for another version. What the image has is the same here.
    let before = seen(&stage.fixture);
    let image = json!({ "general": { "image": OTHER_IMAGE, "version": "2.19.4" } });
    edit(&stage, "an image and a version", &image);
    let after = seen(&stage.fixture);
    assert_other_containers_in_the_same_pods(&before, &after);
    assert!(after.iter().all(|pod| pod.image == OTHER_IMAGE), "{after:#?}");
    stage.until_upgraded("2.19.4");

    let replaced =
        first.iter().zip(seen(&stage.fixture)).filter(|(was, is)| was.uid != is.uid).count();
    println!("pods that the operator has replaced: {replaced}, without the policy");
    assert!(replaced <= 1, "{replaced}");
    let count = clients.end();
    println!("{:?}, {:?}, failing for {:?}", count.writes, count.searches, count.failing);
    let one = &seen(&stage.fixture)[0];
    let lost = |number: &&u32| one.ask(&document(**number)).is_none();
    let lost: Vec<&u32> = count.kept.iter().filter(lost).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

/// One node does not start on a wrong setting, and the others are left alone; with the setting gone it starts by itself.
fn wrong_and_taken_back(stage: &Stage) {
    const WRONG: &str = "no.such.setting";
    let (before, known) = (seen(&stage.fixture), history(&stage.fixture).len());
    let began = Instant::now();
    stage.edit(&json!({ "general": { "additionalConfig": { WRONG: "true" } } }));
    let entry = until_another_ended(&stage.fixture, known);
    assert_ne!(entry["outcome"], "done", "{entry:#}");
    println!("a wrong setting: {} ms, {entry}", began.elapsed().as_millis());
    stage.edit(&json!({ "general": { "additionalConfig": { WRONG: null } } }));
    stage.until_at_rest();
    println!("taken back: {} ms", began.elapsed().as_millis());
    let after = seen(&stage.fixture);
    assert!(before.iter().map(Seen::same_pod).eq(after.iter().map(Seen::same_pod)), "{after:#?}");
    let others = before.iter().zip(&after).filter(|(was, is)| was.container == is.container);
    assert!(others.count() >= 2, "{before:#?} {after:#?}");
}

/// What is edited meanwhile arrives when it is back.
fn edited_while_the_operator_was_away(stage: &mut Stage) {
    stage.operator.kill();
    let before = seen(&stage.fixture);
    stage.edit(&json!({ "general": { "additionalConfig": { "node.attr.round": "fourth" } } }));
    stage.operator.start_again();
    stage.until_carried_out();
    assert_eq!(attributes(&stage.fixture, "round"), ["fourth"; 3]);
    assert_other_containers_in_the_same_pods(&before, &seen(&stage.fixture));
}

/// Edits the `OpenSearchCluster`, and waits until all nodes have it and the operator wants nothing else.
fn edit(stage: &Stage, what: &str, spec: &Value) {
    let (began, before) = (Instant::now(), seen(&stage.fixture));
    stage.edit(spec);
    stage.until_carried_out();
    let same =
        before.iter().zip(seen(&stage.fixture)).filter(|(was, is)| was.uid == is.uid).count();
    println!("{what}: {same} of 3 pods are the same after {} ms", began.elapsed().as_millis());
}

#[track_caller]
fn same_containers(before: &[Seen], after: &[Seen]) {
    assert_eq!(after.len(), before.len(), "{after:#?}");
    for (was, is) in before.iter().zip(after) {
        assert_eq!((is.same_pod(), &is.container), (was.same_pod(), &was.container));
    }
}
