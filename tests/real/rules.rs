//! The rule book on a real cluster of five OpenSearch nodes under five managers: which node goes,
//! in what order, and what is said of those that may not. One cluster for all stories, one after
//! the other: each leaves it green. Clusters too small for a majority have stories of their own.

mod few;
mod field;
mod order;
mod quorum;
mod red;
mod unreplicated;
mod zone;

use crate::restart::ground::Ground;
use crate::restart::turn;
use crate::support::cluster::Flavor;
use crate::support::skip::skip;

#[test]
fn five_nodes_go_by_the_rules_or_stay_with_a_reason() {
    let _turn = turn();
    let began = std::time::Instant::now();
    let field = match Ground::of(Flavor::OpenSearch, &field::PLACES) {
        Ok(ground) => field::Field::new(ground),
        Err(why) => return skip("rules::five_nodes_go_by_the_rules_or_stay_with_a_reason", &why),
    };
    println!("{} s until five nodes serve", began.elapsed().as_secs());
    order::by_role(&field);
    zone::at_once(&field);
    unreplicated::index(&field);
    red::index(&field);
    quorum::masters_out(&field);
    println!("{} s in all", began.elapsed().as_secs());
}
