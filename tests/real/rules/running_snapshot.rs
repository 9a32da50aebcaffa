//! A node that a snapshot is being taken from is not stopped before its shards are read.

use serde_json::json;

use crate::restart::step;

use super::five_nodes::FiveNodes;

const RULE: &str = "do_not_interrupt_running_snapshot";
const INDEX: &str = "archive";
/// It has the primary.
const NODE: &str = "logs-d-1";

/// Text that cannot be compressed, the same in each run.
fn noise(seed: u64, length: usize) -> String {
    let mut state = seed;
    let mut letter = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + u8::try_from((state >> 33) % 75).expect("small"))
    };
    (0..length).map(|_| letter()).filter(|c| c.is_ascii_alphanumeric()).collect()
}

/// The repository is so slow that the snapshot takes far longer than a look at the cluster.
pub(super) fn waited_for(cluster: &FiveNodes) {
    step("a snapshot that takes its time");
    let settings = json!({ "settings": {
        "number_of_shards": 1,
        "number_of_replicas": 0,
        "index.routing.allocation.require._name": NODE,
    } });
    cluster.ask_engine("PUT", &format!("/{INDEX}?wait_for_active_shards=all"), Some(&settings));
    for seed in 1..3 {
        let document = json!({ "text": noise(seed, 300_000) });
        let target = format!("/{INDEX}/_doc/{seed}");
        let answer = cluster.fixture.nodes()[0].send("PUT", &target, Some(&document));
        assert_eq!(answer.expect("an answer").status, 201, "{target}");
    }
    cluster.ask_engine("POST", &format!("/{INDEX}/_flush"), None);
    let settings =
        json!({ "number_of_replicas": 1, "index.routing.allocation.require._name": null });
    cluster.ask_engine("PUT", &format!("/{INDEX}/_settings"), Some(&settings));
    cluster.until_whole();
    let location = cluster.fixture.cluster().repository.join("nightly");
    let repository = json!({ "type": "fs", "settings": {
        "location": location, "compress": false, "max_snapshot_bytes_per_sec": "20kb",
    } });
    cluster.ask_engine("PUT", "/_snapshot/nightly", Some(&repository));
    let before = cluster.fixture.facts();
    let snapshot = json!({ "indices": INDEX, "include_global_state": false });
    cluster.ask_engine("PUT", "/_snapshot/nightly/friday", Some(&snapshot));

    step("its node waits, and goes when it has ended");
    let id = cluster.id("after-snapshot");
    cluster.stayput(&["restart", "logs", "--node", NODE, "--id", &id]);
    let message = cluster.until_blocked(NODE, RULE);
    assert!(message.contains("the snapshot nightly:friday is being taken of 1 shard"), "{message}");
    assert_eq!(cluster.fixture.facts(), before);
    cluster.until_done(&id, &before, &[NODE]);
    cluster.until_whole();
    let taken = cluster.ask_engine("GET", "/_snapshot/nightly/friday", None);
    assert_eq!(taken["snapshots"][0]["state"], "SUCCESS", "{taken}");
    for target in
        [format!("/{INDEX}"), "/_snapshot/nightly/friday".into(), "/_snapshot/nightly".into()]
    {
        cluster.ask_engine("DELETE", &target, None);
    }
    cluster.until_whole();
}
