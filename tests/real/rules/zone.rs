//! A zone is restarted as a whole.

use crate::restart::sampler::Sampler;
use crate::restart::step;

use super::five_nodes::FiveNodes;

/// Both nodes of a zone are stopped at the same time: a data node, and one that can be elected and
/// also holds data. Every shard has a copy in the other zone.
pub(super) fn as_a_whole(cluster: &FiveNodes) {
    step("a zone as a whole");
    let id = cluster.id("zone-1");
    let before = cluster.fixture.facts();
    let sampler = Sampler::start(&cluster.fixture.nodes());
    cluster.stayput(&["restart", "logs", "--zone", "z1", "--id", &id]);
    cluster.until_done(&id, &before, &["logs-d-1", "logs-m-1"]);
    let seen = sampler.end();
    assert!(seen.health.iter().any(|(_, number)| *number == 3), "one by one: {:?}", seen.health);
    for (color, number) in &seen.health {
        assert!(color == "green" || color == "yellow", "{:?}", seen.health);
        assert!(*number >= 3, "{:?}", seen.health);
    }
    cluster.until_whole();
}
