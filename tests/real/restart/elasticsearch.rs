//! Elasticsearch: protected by its own node-shutdown records, and by the allocation setting.

use serde_json::json;

use super::ground::Ground;
use super::{load, on, rolling};
use crate::support::cluster::Flavor;

#[test]
fn restarted_with_node_shutdown_records() {
    let name = "elasticsearch::restarted_with_node_shutdown_records";
    on(name, Flavor::ElasticsearchWithRecords, |mut ground: Ground| {
        load::create(ground.nodes()[0]);
        ground.until_formed();
        let nodes = ground.facts();
        let (seen, _) = rolling::restart(&mut ground, "with-records", 0, |_| {});
        for (name, facts) in &nodes {
            let id = facts.id.clone().expect("an id");
            // Elasticsearch says `RESTART`.
            let record = seen.records.iter().find(|(node, _)| *node == id);
            let kind = record.map(|(_, kind)| kind.to_ascii_lowercase());
            assert_eq!(kind.as_deref(), Some("restart"), "{name}: {:?}", seen.records);
        }
        assert!(!rolling::was_limited(&seen, "with-records"), "both: {:?}", seen.settings);
        assert_eq!(ground.engine("/_nodes/shutdown")["nodes"], json!([]));
    });
}

#[test]
fn restarted_with_the_allocation_setting() {
    let name = "elasticsearch::restarted_with_the_allocation_setting";
    on(name, Flavor::Elasticsearch, |mut ground: Ground| {
        load::create(ground.nodes()[0]);
        ground.until_formed();
        assert_eq!(ground.settings(), json!({}));
        let (seen, _) = rolling::restart(&mut ground, "with-setting", 0, |_| {});
        assert!(rolling::was_limited(&seen, "with-setting"), "{seen:?}");
        assert!(seen.records.is_empty(), "{seen:?}");
    });
}
