//! The rules on a real cluster of five OpenSearch nodes under five managers: which node is
//! restarted, in what order, and which messages the others show. One cluster for all tests, one
//! after the other: each leaves it green. Clusters too small for a majority have their own tests.

mod engine_killed;
mod five_nodes;
mod order;
mod quorum;
mod red;
mod running_snapshot;
mod searchable_snapshot;
mod small_clusters;
mod unreplicated;
mod zone;

use crate::restart::fixture::Fixture;
use crate::support::cluster::Flavor;
use crate::support::skip;

#[test] // proves RULE-5, RULE-17, UPDATE-39
fn five_nodes_go_by_the_rules_or_stay_with_a_reason() {
    let began = std::time::Instant::now();
    let cluster = match Fixture::of(Flavor::OpenSearch, &five_nodes::NODE_SPECS) {
        Ok(fixture) => five_nodes::FiveNodes::new(fixture),
        Err(why) => return skip("rules::five_nodes_go_by_the_rules_or_stay_with_a_reason", &why),
    };
    println!("{} s until five nodes serve", began.elapsed().as_secs());
    all_rules(&cluster);
    println!("{} s in all", began.elapsed().as_secs());
}

/// How often, unless `STAYPUT_ROUNDS` is set.
const ROUNDS: u32 = 50;

/// The same again and again: what depends on which of two events is first is seen by chance.
#[test]
#[ignore = "the long form: about three minutes a round"]
fn five_nodes_go_by_the_rules_again_and_again() {
    again_and_again("rules::five_nodes_go_by_the_rules_again_and_again", all_rules);
}

/// The one of them in which two nodes are out at a moment that chance decides.
#[test]
#[ignore = "the long form: about half a minute a round"]
fn an_engine_is_killed_while_another_starts_again_and_again() {
    again_and_again(
        "rules::an_engine_is_killed_while_another_starts_again_and_again",
        engine_killed::while_another_starts,
    );
}

fn again_and_again(test: &str, story: fn(&five_nodes::FiveNodes)) {
    let mut cluster = match Fixture::of(Flavor::OpenSearch, &five_nodes::NODE_SPECS) {
        Ok(fixture) => five_nodes::FiveNodes::new(fixture),
        Err(why) => return skip(test, &why),
    };
    let rounds = std::env::var("STAYPUT_ROUNDS");
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"));
    for round in 0..rounds {
        cluster.round = round;
        let began = std::time::Instant::now();
        story(&cluster);
        println!("round {} of {rounds}: passed, {} s", round + 1, began.elapsed().as_secs());
    }
}

fn all_rules(cluster: &five_nodes::FiveNodes) {
    order::by_role(cluster);
    zone::as_a_whole(cluster);
    engine_killed::while_another_starts(cluster);
    unreplicated::index(cluster);
    searchable_snapshot::mounted(cluster);
    running_snapshot::waited_for(cluster);
    red::index(cluster);
    quorum::masters_out(cluster);
}
