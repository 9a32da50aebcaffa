//! Data nodes before master-eligible ones, the elected master last.

use crate::restart::sampler::Sampler;
use crate::restart::step;

use super::five_nodes::{FiveNodes, MASTERS, NODE_SPECS};

/// A rolling restart of all nodes takes them one by one, in the order of their roles.
pub(super) fn by_role(cluster: &FiveNodes) {
    let elected = cluster.elected();
    step(&format!("rolling, by roles; {elected} is elected"));
    let id = cluster.id("by-role");
    let before = cluster.fixture.facts();
    let sampler = Sampler::start(&cluster.fixture.nodes());
    let printed = cluster.stayput(&["restart", "logs", "--id", &id]);
    println!("{printed}");
    let names = NODE_SPECS.map(|place| place.name);
    let after = cluster.until_done(&id, &before, &names);
    let seen = sampler.end();

    let mut order: Vec<&str> = after.keys().map(String::as_str).collect();
    order.sort_by_key(|name| &after[*name].started_at);
    // Sets by name, the highest number first.
    let mut expected = vec!["logs-d-1", "logs-d-0"];
    expected.extend(MASTERS.into_iter().rev().filter(|name| *name != elected));
    expected.push(&elected);
    assert_eq!(order, expected, "{after:#?}");
    // One at a time, and the cluster was never red.
    assert!(seen.health.iter().any(|(_, number)| *number == 4), "{:?}", seen.health);
    for (color, number) in &seen.health {
        assert!(color == "green" || color == "yellow", "{:?}", seen.health);
        assert!(*number >= 4, "{:?}", seen.health);
    }
    // Another node was elected while it was away. Further elections are the engine's right.
    assert!(seen.masters.len() >= 2, "{:?}", seen.masters);
    assert_eq!(Some(&seen.masters[0]), before[&elected].id.as_ref());
    cluster.until_whole();
}
