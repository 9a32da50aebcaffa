//! A node set gets another name: other nodes are made, the data moves to them, and the old ones go.

use std::time::Instant;

use serde_json::json;

use super::claims::claims;
use super::writer::{assert_kept, write_until};
use super::{EXCLUDED, STAYPUT, opensearch};
use crate::pods::fixture::Fixture;
use crate::pods::nodes::{observe_all, until_formed};
use crate::pods::opensearch::Parts;
use crate::support::wait::eventually;

/// Renames the set; the index `docs` has as many documents. More are written meanwhile, and none is
/// lost. `excluded` are names that a person has excluded from allocation.
pub(super) fn rename(fixture: &Fixture, parts: &Parts, documents: usize, excluded: &str) {
    let began = Instant::now();
    fixture.admin().apply(&opensearch(fixture, parts, "other", 3, "second"));
    let written = write_until(fixture, documents, || {
        let sets = fixture.run(&["get", "statefulsets", "--output", "name"]);
        !sets.contains("logs-all")
    });
    println!(
        "a set of three renamed, {} documents written meanwhile: {} ms",
        written - documents,
        began.elapsed().as_millis()
    );
    assert!(written > documents, "the client could write");

    let nodes = observe_all(fixture, STAYPUT);
    let others = ["logs-other-0", "logs-other-1", "logs-other-2"];
    assert!(nodes.keys().eq(others), "{nodes:#?}");
    until_formed(&nodes);
    let node = nodes.values().next().expect("a node");
    assert_kept(node, written);
    eventually("the claims of the old nodes go with them", || {
        let claims = claims(fixture);
        claims.keys().eq(["logs-more-0"].iter().chain(&others)).then_some(())
    });
    fixture.until_idle();
    fixture.until_nothing_is_owed();
    let settings = node.ask("/_cluster/settings?flat_settings=true").expect("settings");
    assert_eq!(settings["persistent"][EXCLUDED], excluded);
    let state = node.ask("/_cluster/state/metadata").expect("a state");
    let votes = &state["metadata"]["cluster_coordination"];
    assert_eq!(votes["voting_config_exclusions"], json!([]));
}
