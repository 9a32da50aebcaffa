//! Clusters without a spare majority: one node, whose restart is an outage, and two nodes, of which
//! only one has a vote.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::{Value, json};

use crate::restart::fixture::{Fixture, NodeSpec, until};
use crate::restart::sampler::Sampler;
use crate::restart::step;
use crate::support::cluster::Flavor;
use crate::support::skip;

use super::five_nodes::FiveNodes;

const MASTER_WITH_DATA: Option<&[&str]> = Some(&["cluster_manager", "data"]);
const ONE: [NodeSpec; 1] = [NodeSpec { name: "logs-0", zone: "z0", roles: MASTER_WITH_DATA }];
const TWO: [NodeSpec; 2] = [
    NodeSpec { name: "logs-0", zone: "z0", roles: MASTER_WITH_DATA },
    NodeSpec { name: "logs-1", zone: "z1", roles: MASTER_WITH_DATA },
];

#[test]
fn one_node_goes_where_an_outage_is_allowed_and_two_hand_the_vote_over() {
    let began = Instant::now();
    for (places, story) in [(&ONE[..], one as fn(Fixture)), (&TWO, two)] {
        match Fixture::of(Flavor::OpenSearch, places) {
            Ok(fixture) => story(fixture),
            Err(why) => {
                let name = "one_node_goes_where_an_outage_is_allowed_and_two_hand_the_vote_over";
                return skip(&format!("rules::small_clusters::{name}"), &why);
            }
        }
        println!("{} s with {} nodes and before", began.elapsed().as_secs(), places.len());
    }
}

/// No master could be elected during its restart, so it is blocked until an outage is allowed. The
/// same is true for data that only it has.
fn one(fixture: Fixture) {
    let cluster = FiveNodes { fixture, round: 0 };
    let settings = json!({ "settings": { "number_of_shards": 1, "number_of_replicas": 0 } });
    cluster.ask_engine("PUT", "/alone?wait_for_active_shards=all", Some(&settings));
    let rest = cluster.fixture.nodes()[0];
    assert!(rest.index("alone", 0));
    let before = cluster.fixture.facts();
    step("the only node is asked for");
    cluster.stayput(&["restart", "logs", "--id", "outage"]);
    let message = cluster.until_blocked("logs-0", "quorum");
    assert!(message.contains("restart logs --allow-outage"), "{message}");
    assert_eq!(cluster.fixture.facts(), before);

    step("a request allows an outage");
    cluster.stayput(&["cancel", "logs"]);
    cluster.stayput(&["restart", "logs", "--id", "allowed", "--allow-outage", "--yes"]);
    cluster.until_done("allowed", &before, &["logs-0"]);
    cluster.fixture.until_formed();
    assert!(rest.has("alone", 0));
    assert_eq!(cluster.fixture.settings(), json!({}));
}

/// The node without a vote is restarted first. Then the other one's vote is handed over to it, and
/// at the end both may vote again.
fn two(fixture: Fixture) {
    let cluster = FiveNodes::new(fixture);
    let voter = until("one of them has the only vote", || {
        let voters = voters(&cluster);
        (voters.len() == 1).then(|| voters.into_iter().next()).flatten()
    });
    let recipient =
        TWO.iter().map(|place| place.name).find(|name| *name != voter).expect("another");
    let settings = cluster.fixture.settings();
    let before = cluster.fixture.facts();
    let sampler = Sampler::start(&cluster.fixture.nodes());
    step(&format!("both are asked for; {voter} has the only vote"));
    cluster.stayput(&["restart", "logs", "--id", "both"]);
    cluster.fixture.until_status("its vote is owed", |status| {
        status.ledger.debts.exclusion.as_ref().is_some_and(|debt| debt.node == voter)
    });
    let after = cluster.until_done("both", &before, &["logs-0", "logs-1"]);
    let seen = sampler.end();
    println!(
        "{} observations: {:?}, elected {:?}, excluded {:?}",
        seen.answers, seen.health, seen.masters, seen.excluded
    );
    assert!(after[recipient].started_at < after[&voter].started_at, "{after:#?}");
    assert_eq!(seen.excluded, BTreeSet::from([voter]), "{seen:?}");
    assert!(seen.settings.iter().any(|one| one.contains("\"primaries\"")), "{seen:?}");
    assert!(seen.health.iter().all(|(color, _)| color != "red"), "{seen:?}");

    // The vote recipient is still the master, and no node is excluded from voting.
    assert_eq!(cluster.elected(), recipient);
    assert_eq!(seen.masters.last(), after[recipient].id.as_ref(), "{seen:?}");
    assert_eq!(coordination(&cluster)["voting_config_exclusions"], json!([]));
    assert_eq!(cluster.fixture.settings(), settings);
    cluster.until_whole();
}

/// Names of the nodes that vote.
#[track_caller]
fn voters(cluster: &FiveNodes) -> BTreeSet<String> {
    let ids = coordination(cluster)["last_committed_config"].clone();
    let ids = ids.as_array().expect("a voting configuration");
    let has = |id: &Option<String>| ids.iter().any(|one| one.as_str() == id.as_deref());
    let facts = cluster.fixture.facts();
    facts.into_iter().filter(|(_, node)| has(&node.id)).map(|(name, _)| name).collect()
}

/// The voting part of the cluster state.
#[track_caller]
fn coordination(cluster: &FiveNodes) -> Value {
    cluster.fixture.engine("/_cluster/state/metadata")["metadata"]["cluster_coordination"].clone()
}
