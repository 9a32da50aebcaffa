//! An index without replicas blocks the node that holds it, and its zone as a whole.

use serde_json::json;

use crate::restart::step;

use super::five_nodes::FiveNodes;

const RULE: &str = "unreplicated_index";

/// Requested as a zone, then as a node; neither is restarted before there is a replica.
pub(super) fn index(cluster: &FiveNodes) {
    step("an index without replicas, and the zone it is in");
    let settings = json!({ "settings": {
        "number_of_shards": 1,
        "number_of_replicas": 0,
        "index.routing.allocation.require._name": "logs-d-0",
    } });
    cluster.ask_engine("PUT", "/single?wait_for_active_shards=all", Some(&settings));
    let before = cluster.fixture.facts();
    let id = cluster.id("zone-0");
    cluster.stayput(&["restart", "logs", "--zone", "z0", "--id", &id]);
    let message = cluster.until_blocked("logs-d-0", RULE);
    assert!(message.contains("shard 0 of single"), "{message}");
    // The other one alone could be restarted, but not the zone as a whole.
    let status = cluster.fixture.status();
    let message = status.report.message.expect("a sentence");
    assert!(message.contains("zone z0 is restarted as a whole"), "{message}");
    assert!(message.contains("--node logs-m-0"), "{message}");
    assert!(cluster.stayput(&["why", "logs-m-0"]).contains("zone z0 is restarted as a whole"));
    cluster.stayput(&["cancel", "logs", "--id", &id]);
    let entry = cluster.fixture.until_over(&id);
    assert_eq!(entry.nodes, 0, "{entry:?}");
    assert_eq!(cluster.fixture.facts(), before);

    step("the node that has it alone, until there is a replica");
    let id = cluster.id("single");
    cluster.stayput(&["restart", "logs", "--node", "logs-d-0", "--id", &id]);
    let message = cluster.until_blocked("logs-d-0", RULE);
    assert!(message.contains("index.number_of_replicas"), "{message}");
    assert_eq!(cluster.fixture.facts(), before);
    let settings =
        json!({ "number_of_replicas": 1, "index.routing.allocation.require._name": null });
    cluster.ask_engine("PUT", "/single/_settings", Some(&settings));
    cluster.until_done(&id, &before, &["logs-d-0"]);
    cluster.ask_engine("DELETE", "/single", None);
    cluster.until_whole();
}
