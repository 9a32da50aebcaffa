//! A zone goes as a whole.

use crate::restart::sampler::Sampler;
use crate::restart::step;

use super::field::Field;

/// Both nodes of a zone are out at the same time: a data node, and one that can be elected and holds
/// data, too. Every shard has a copy in the other zone.
pub(super) fn at_once(field: &Field) {
    step("a zone at once");
    let before = field.ground.facts();
    let sampler = Sampler::start(&field.ground.nodes());
    field.stayput(&["restart", "logs", "--zone", "z1", "--id", "zone-1"]);
    field.until_done("zone-1", &before, &["logs-d-1", "logs-m-1"]);
    let seen = sampler.end();
    assert!(seen.health.iter().any(|(_, number)| *number == 3), "one by one: {:?}", seen.health);
    for (color, number) in &seen.health {
        assert!(color == "green" || color == "yellow", "{:?}", seen.health);
        assert!(*number >= 3, "{:?}", seen.health);
    }
    field.until_whole();
}
