//! Edits without the policy: who comes first, the operator's look or the labels.

use std::time::Instant;

use serde_json::json;
use stayput_standin::opensearch_operator::Action;

use super::stage::{ReadyPods, Stage, TIERS};
use crate::pods::clients::{Clients, document};
use crate::pods::door::Door;
use crate::pods::fixture::{ENGINE, OTHER};
use crate::pods::nodes::NODES;
use crate::pods::seen::{assert_other_containers_in_the_same_pods, attributes, seen};

#[test]
#[ignore = "minutes; cargo test --test real -- --ignored opensearch_operator"]
fn edits_again_and_again() {
    const TEST: &str = "pods::opensearch_operator::races::edits_again_and_again";
    let Some(stage) = Stage::set_up(TEST) else { return };
    let rounds = std::env::var("STAYPUT_ROUNDS").ok().and_then(|text| text.parse().ok());
    let clients = Clients::start(&stage.fixture, Door::plain());
    let ready = ReadyPods::count(&stage.fixture);
    let mut replaced = Vec::new();
    for round in 0..rounds.unwrap_or(5) {
        let (known, looks, began) = (stage.restarts(), stage.operator.looks(), Instant::now());
        let config = json!({ "node.attr.round": round.to_string() });
        // Another image, too: the kubelet waits before it makes a container with the same one once more.
        let image = if round % 2 == 0 { OTHER } else { ENGINE };
        stage.edit(&json!({ "general": { "image": image, "additionalConfig": config } }));
        stage.until_carried_out(known);
        stage.until_operator_is_content();
        assert_eq!(attributes(&stage.fixture, "round"), vec![round.to_string(); NODES.len()]);
        let done = stage.operator.done_since(looks);
        let deleted = |action: &&Action| matches!(action, Action::Delete { .. });
        replaced.push(done.iter().filter(deleted).count());
        println!("round {round}: {} ms, {replaced:?}", began.elapsed().as_millis());
    }
    a_variable_comes_to_the_same_pods(&stage);
    println!("pods that the operator has deleted in each round: {replaced:?}");
    assert_eq!(ready.fewest(), NODES.len() - 1, "one node at a time");
    let count = clients.end();
    println!("{:?}, {:?}, failing for {:?}", count.writes, count.searches, count.failing);
    let first = &seen(&stage.fixture)[0];
    let lost = |number: &&u32| first.ask(&document(**number)).is_none();
    let lost: Vec<&u32> = count.kept.iter().filter(lost).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert!(replaced.iter().all(|count| *count <= 1), "{replaced:?}");
}

/// The operator does not know of it: the template stays.
fn a_variable_comes_to_the_same_pods(stage: &Stage) {
    let fixture = &stage.fixture;
    let (before, known, looks) = (seen(fixture), stage.restarts(), stage.operator.looks());
    let patch = json!({ "data": { "tier": "warm" } }).to_string();
    fixture.run(&["patch", "configmap", TIERS, "--type=merge", "--patch", &patch]);
    stage.until_carried_out(known);
    assert_eq!(attributes(&stage.fixture, "tier"), ["warm"; NODES.len()]);
    assert_other_containers_in_the_same_pods(&before, &seen(fixture));
    stage.until_operator_is_content();
    assert_eq!(stage.operator.done_since(looks), []);
}
