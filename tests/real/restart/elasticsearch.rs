//! Elasticsearch: protected by its own node-shutdown records and by the allocation setting.

use serde_json::json;

use super::fixture::Fixture;
use super::{load, on, rolling};
use crate::support::cluster::Flavor;

#[test]
fn restarted_with_node_shutdown_records() {
    let name = "elasticsearch::restarted_with_node_shutdown_records";
    on(name, Flavor::ElasticsearchWithRecords, |mut fixture: Fixture| {
        load::create(fixture.nodes()[0]);
        fixture.until_formed();
        let nodes = fixture.facts();
        let (seen, _) = rolling::restart(&mut fixture, "with-records", 0, |_| {});
        for (name, facts) in &nodes {
            let id = facts.id.clone().expect("an id");
            // Elasticsearch reports `RESTART`.
            let record = seen.records.iter().find(|(node, _)| *node == id);
            let kind = record.map(|(_, kind)| kind.to_ascii_lowercase());
            assert_eq!(kind.as_deref(), Some("restart"), "{name}: {:?}", seen.records);
        }
        assert!(!rolling::was_limited(&seen, "with-records"), "both: {:?}", seen.settings);
        assert_eq!(fixture.engine("/_nodes/shutdown")["nodes"], json!([]));
    });
}

/// The same with OpenSearch is a part of every run.
#[test]
#[ignore = "the long form: about two minutes"]
fn restarted_with_the_allocation_setting() {
    let name = "elasticsearch::restarted_with_the_allocation_setting";
    on(name, Flavor::Elasticsearch, |mut fixture: Fixture| {
        load::create(fixture.nodes()[0]);
        fixture.until_formed();
        assert_eq!(fixture.settings(), json!({}));
        let (seen, _) = rolling::restart(&mut fixture, "with-setting", 0, |_| {});
        assert!(rolling::was_limited(&seen, "with-setting"), "{seen:?}");
        assert!(seen.records.is_empty(), "{seen:?}");
    });
}
