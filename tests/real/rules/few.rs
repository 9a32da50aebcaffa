//! Clusters without a majority to spare: one node, whose restart is an outage, and two, of which one
//! has the only vote.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::{Value, json};

use crate::restart::ground::{Ground, Place, until};
use crate::restart::sampler::Sampler;
use crate::restart::{step, turn};
use crate::support::cluster::Flavor;
use crate::support::skip::skip;

use super::field::Field;

const MASTER_WITH_DATA: Option<&[&str]> = Some(&["cluster_manager", "data"]);
const ONE: [Place; 1] = [Place { name: "logs-0", zone: "z0", roles: MASTER_WITH_DATA }];
const TWO: [Place; 2] = [
    Place { name: "logs-0", zone: "z0", roles: MASTER_WITH_DATA },
    Place { name: "logs-1", zone: "z1", roles: MASTER_WITH_DATA },
];

#[test]
fn one_node_goes_where_an_outage_is_allowed_and_two_hand_the_vote_over() {
    let _turn = turn();
    let began = Instant::now();
    for (places, story) in [(&ONE[..], one as fn(Ground)), (&TWO, two)] {
        match Ground::of(Flavor::OpenSearch, places) {
            Ok(ground) => story(ground),
            Err(why) => {
                let name = "one_node_goes_where_an_outage_is_allowed_and_two_hand_the_vote_over";
                return skip(&format!("rules::few::{name}"), &why);
            }
        }
        println!("{} s with {} nodes and before", began.elapsed().as_secs(), places.len());
    }
}

/// Nobody could elect a master meanwhile: it stays, until an outage is allowed. Then it goes, and
/// so does what only it has.
fn one(ground: Ground) {
    let field = Field { ground };
    let settings = json!({ "settings": { "number_of_shards": 1, "number_of_replicas": 0 } });
    field.ask_engine("PUT", "/alone?wait_for_active_shards=all", Some(&settings));
    let rest = field.ground.nodes()[0];
    assert!(rest.index("alone", 0));
    let before = field.ground.facts();
    step("the only node is asked for");
    field.stayput(&["restart", "logs", "--id", "outage"]);
    let message = field.until_blocked("logs-0", "quorum");
    assert!(message.contains("spec.restart.allowOutage: true"), "{message}");
    assert_eq!(field.ground.facts(), before);

    step("an outage is allowed");
    field.ground.policy(&json!({ "allowOutage": true }));
    field.until_done("outage", &before, &["logs-0"]);
    field.ground.until_formed();
    assert!(rest.has("alone", 0));
    assert_eq!(field.ground.settings(), json!({}));
}

/// The one without a vote goes first. Then the other one's vote is handed over to it, and both may
/// vote again.
fn two(ground: Ground) {
    let field = Field::new(ground);
    let voter = until("one of them has the only vote", || {
        let voters = voters(&field);
        (voters.len() == 1).then(|| voters.into_iter().next()).flatten()
    });
    let heir = TWO.iter().map(|place| place.name).find(|name| *name != voter).expect("another");
    let settings = field.ground.settings();
    let before = field.ground.facts();
    let sampler = Sampler::start(&field.ground.nodes());
    step(&format!("both are asked for; {voter} has the only vote"));
    field.stayput(&["restart", "logs", "--id", "both"]);
    field.ground.until_status("its vote is owed", |status| {
        status.ledger.debts.exclusion.as_ref().is_some_and(|debt| debt.node == voter)
    });
    let after = field.until_done("both", &before, &["logs-0", "logs-1"]);
    let seen = sampler.end();
    println!(
        "{} looks: {:?}, elected {:?}, excluded {:?}",
        seen.answers, seen.health, seen.masters, seen.excluded
    );
    assert!(after[heir].started_at < after[&voter].started_at, "{after:#?}");
    assert_eq!(seen.excluded, BTreeSet::from([voter]), "{seen:?}");
    assert!(seen.settings.iter().any(|one| one.contains("\"primaries\"")), "{seen:?}");
    assert!(seen.health.iter().all(|(color, _)| color != "red"), "{seen:?}");

    // Whoever took the vote over still leads, and nobody is kept from voting.
    assert_eq!(field.elected(), heir);
    assert_eq!(seen.masters.last(), after[heir].id.as_ref(), "{seen:?}");
    assert_eq!(coordination(&field)["voting_config_exclusions"], json!([]));
    assert_eq!(field.ground.settings(), settings);
    field.until_whole();
}

/// Names of the nodes that vote.
#[track_caller]
fn voters(field: &Field) -> BTreeSet<String> {
    let ids = coordination(field)["last_committed_config"].clone();
    let ids = ids.as_array().expect("a voting configuration");
    let has = |id: &Option<String>| ids.iter().any(|one| one.as_str() == id.as_deref());
    let facts = field.ground.facts();
    facts.into_iter().filter(|(_, node)| has(&node.id)).map(|(name, _)| name).collect()
}

/// What the cluster's state says of votes.
#[track_caller]
fn coordination(field: &Field) -> Value {
    field.ground.engine("/_cluster/state/metadata")["metadata"]["cluster_coordination"].clone()
}
