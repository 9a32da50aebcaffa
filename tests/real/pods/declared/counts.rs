//! Two nodes more, and two nodes less: shards move first.

use std::time::Instant;

use serde_json::json;

use super::writer::{assert_kept, write_until};
use super::{EXCLUDED, STAYPUT, has_replicas, opensearch, put, until_replicas};
use crate::pods::fixture::Fixture;
use crate::pods::nodes::{attribute, observe_all};
use crate::pods::opensearch::Parts;
use crate::support::wait::eventually;

/// What a person has excluded from allocation.
pub(super) const THEIRS: &str = "old, older";

/// From three nodes to five and back, while a client writes; returns how many documents there are.
pub(super) fn five_and_three_again(fixture: &Fixture, parts: &Parts) -> usize {
    let three = observe_all(fixture, STAYPUT);
    let node = three.values().next().expect("a node");
    let (settings, documents) = (json!({ "settings": { "number_of_shards": 8 } }), 40);
    put(node, "/docs?wait_for_active_shards=all", &settings);
    for id in 0..documents {
        put(node, &format!("/docs/_doc/{id}"), &json!({ "id": id }));
    }

    // The others go on.
    let began = Instant::now();
    fixture.admin().apply(&opensearch(fixture, parts, "all", 5, "second"));
    let target = "/_cluster/health?wait_for_nodes=5&wait_for_status=green&timeout=1s";
    let is_grown = || node.ask(target).is_some_and(|health| health["timed_out"] == false);
    let written = write_until(fixture, documents, is_grown);
    until_replicas(fixture, 5);
    println!("three nodes to five: {} ms", began.elapsed().as_millis());
    let five = observe_all(fixture, STAYPUT);
    for (name, node) in &three {
        assert_eq!(five[name].run(), node.run(), "{name} was restarted");
    }
    assert_eq!(attribute(&five, "round"), vec![json!("second"); 5]);

    put(node, "/_cluster/settings", &json!({ "persistent": { EXCLUDED: THEIRS } }));
    let began = Instant::now();
    fixture.admin().apply(&opensearch(fixture, parts, "all", 3, "second"));
    let written = write_until(fixture, written, || has_replicas(fixture, 3));
    let target = "/_cluster/health?wait_for_nodes=3&wait_for_status=green&timeout=5s";
    eventually("three nodes", || (node.ask(target)?["timed_out"] == false).then_some(()));
    println!("five nodes to three, {written} documents: {} ms", began.elapsed().as_millis());
    assert!(written > documents, "the client could write");
    fixture.until_nothing_is_owed();
    let left = observe_all(fixture, STAYPUT);
    assert!(left.keys().eq(three.keys()), "{left:#?}");
    for (name, node) in &three {
        assert_eq!(left[name].run(), node.run(), "{name} was restarted");
        assert_eq!((&left[name].stays, &left[name].address), (&node.stays, &node.address));
    }
    assert_kept(node, written);
    let settings = node.ask("/_cluster/settings?flat_settings=true").expect("settings");
    assert_eq!(settings["persistent"][EXCLUDED], THEIRS);
    let state = node.ask("/_cluster/state/metadata").expect("a state");
    let votes = &state["metadata"]["cluster_coordination"];
    assert_eq!(votes["voting_config_exclusions"], json!([]));
    written
}
