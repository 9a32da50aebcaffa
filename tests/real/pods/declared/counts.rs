//! Two nodes more, one of them of a set of its own, and two nodes less: shards move first.

use std::time::Instant;

use serde_json::{Value, json};

use super::claims::claims;
use super::writer::{assert_kept, write_until};
use super::{EXCLUDED, STAYPUT, has_replicas, opensearch, put, until_replicas};
use crate::pods::fixture::Fixture;
use crate::pods::nodes::{attribute, observe_all};
use crate::pods::opensearch::Parts;
use crate::pods::victim::Victim;
use crate::support::wait::eventually;

/// What a person has excluded from allocation.
pub(super) const THEIRS: &str = "old, older";

/// The node that leaves last.
const LAST: &str = "logs-more-0";

/// From three nodes to five and back, while a client writes; returns how many documents there are. On
/// the way back the engine of a node that leaves is killed, and the active reconciler.
pub(super) fn five_and_three_again(fixture: &Fixture, parts: &Parts) -> usize {
    let (three, claims_of_three) = (observe_all(fixture, STAYPUT), claims(fixture));
    let node = three.values().next().expect("a node");
    let (settings, documents) = (json!({ "settings": { "number_of_shards": 8 } }), 40);
    put(node, "/docs?wait_for_active_shards=all", &settings);
    for id in 0..documents {
        put(node, &format!("/docs/_doc/{id}"), &json!({ "id": id }));
    }

    // The others go on.
    let began = Instant::now();
    fixture.admin().apply(&five(opensearch(fixture, parts, "all", 4, "second")));
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
    let mut expected = claims_of_three;
    let claims_of_five = claims(fixture);
    expected.extend(["logs-all-3", LAST].map(|new| (new.to_owned(), claims_of_five[new].clone())));
    assert_eq!(claims_of_five, expected);

    put(node, "/_cluster/settings", &json!({ "persistent": { EXCLUDED: THEIRS } }));
    let began = Instant::now();
    fixture.admin().apply(&opensearch(fixture, parts, "all", 3, "second"));
    eventually("the last node is excluded", || {
        let settings = node.ask("/_cluster/settings?flat_settings=true")?;
        settings["persistent"][EXCLUDED].as_str()?.contains(LAST).then_some(())
    });
    Victim::Engine.kill_in_pod(fixture, LAST);
    let killed = fixture.kill_reconciler();
    println!("{LAST} and {killed} were killed: {} ms", began.elapsed().as_millis());
    let before = written;
    let written = write_until(fixture, before, || has_replicas(fixture, 3));
    let target = "/_cluster/health?wait_for_nodes=3&wait_for_status=green&timeout=5s";
    eventually("three nodes", || (node.ask(target)?["timed_out"] == false).then_some(()));
    println!("five nodes to three, {written} documents: {} ms", began.elapsed().as_millis());
    assert!(written > before, "the client could write");
    fixture.until_nothing_is_owed();
    let left = observe_all(fixture, STAYPUT);
    assert!(left.keys().eq(three.keys()), "{left:#?}");
    for (name, node) in &three {
        assert_eq!(left[name].run(), node.run(), "{name} was restarted");
        assert_eq!((&left[name].stays, &left[name].address), (&node.stays, &node.address));
    }
    expected.remove("logs-all-3");
    fixture.run(&[
        "wait",
        "--for=delete",
        "--timeout=10m",
        "persistentvolumeclaim/data-logs-all-3",
    ]);
    assert_eq!(claims(fixture), expected, "those of the other set stay");
    assert_kept(node, written);
    let settings = node.ask("/_cluster/settings?flat_settings=true").expect("settings");
    assert_eq!(settings["persistent"][EXCLUDED], THEIRS);
    let state = node.ask("/_cluster/state/metadata").expect("a state");
    let votes = &state["metadata"]["cluster_coordination"];
    assert_eq!(votes["voting_config_exclusions"], json!([]));
    written
}

/// With a node more in a set of its own, whose claim stays when it leaves.
fn five(mut cluster: Value) -> Value {
    let sets = cluster["spec"]["nodeSets"].as_array_mut().expect("a list");
    let mut more = sets[0].clone();
    more["name"] = json!("more");
    more["count"] = json!(1);
    more["persistentVolumeClaimRetentionPolicy"] = json!({ "whenScaled": "Retain" });
    sets.push(more);
    cluster
}
