//! An index whose data is in a snapshot repository needs no replica.

use std::collections::BTreeSet;

use serde_json::json;
use stayput_engine::{Access, unreplicated};

use crate::engine_client::{client, wait};
use crate::restart::step;

use super::five_nodes::{DOCS, DOCUMENTS, FiveNodes};

const INDEX: &str = "mounted";
/// The only node with the role `search`.
const NODE: &str = "logs-m-2";

/// The same documents once more, from a snapshot. All of its shards are on one node, which is
/// restarted without a consent.
pub(super) fn mounted(cluster: &FiveNodes) {
    step("a mounted searchable snapshot, all on one node");
    let location = cluster.fixture.cluster().repository.clone();
    let repository = json!({ "type": "fs", "settings": { "location": location } });
    cluster.ask_engine("PUT", "/_snapshot/backup", Some(&repository));
    let snapshot = json!({ "indices": DOCS, "include_global_state": false });
    cluster.ask_engine("PUT", "/_snapshot/backup/1?wait_for_completion=true", Some(&snapshot));
    let restore = json!({
        "indices": DOCS,
        "storage_type": "remote_snapshot",
        "rename_pattern": DOCS,
        "rename_replacement": INDEX,
        "index_settings": { "index.number_of_replicas": 0 },
    });
    let target = "/_snapshot/backup/1/_restore?wait_for_completion=true";
    cluster.ask_engine("POST", target, Some(&restore));
    cluster.until_whole();

    step("as the engine client reads it");
    let endpoints: Vec<(String, u16)> = {
        let nodes = cluster.fixture.cluster();
        let http = nodes.ports.http;
        nodes.members.iter().map(|member| (member.address.to_string(), http)).collect()
    };
    let client = client(&endpoints, &Access::Plain);
    let engine = wait(client.identify()).expect("an engine");
    let shards = wait(client.topology(&engine, None)).expect("a topology").shards;
    let alone = unreplicated(&shards);
    assert_eq!(alone.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), [INDEX]);
    let mut places = shards.iter().filter(|shard| &*shard.index == INDEX);
    assert!(places.all(|shard| shard.node_name.as_deref() == Some(NODE)), "{shards:#?}");
    let found = wait(client.searchable_snapshots(&engine)).expect("an answer");
    assert_eq!(found, BTreeSet::from([INDEX.to_owned()]));

    step("its node, without a consent");
    let id = cluster.id("snapshot");
    let before = cluster.fixture.facts();
    cluster.stayput(&["restart", "logs", "--node", NODE, "--id", &id]);
    cluster.until_done(&id, &before, &[NODE]);
    cluster.until_whole();
    assert_eq!(cluster.fixture.nodes()[0].search(INDEX), Some(DOCUMENTS as u64));
    for target in [format!("/{INDEX}"), "/_snapshot/backup/1".into(), "/_snapshot/backup".into()] {
        cluster.ask_engine("DELETE", &target, None);
    }
    cluster.until_whole();
}
