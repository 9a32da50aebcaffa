//! Many restarts on one data path, under one manager.

use serde_json::json;

use super::{on_engine, step};
use crate::support::engine::{Kind, Node};

on_engine!(opensearch, OpenSearch, [cycles_lose_no_document]);
on_engine!(elasticsearch, Elasticsearch, [cycles_lose_no_document]);

// proves STOP-39
fn cycles_lose_no_document(mut node: Node) {
    let cycles = match std::env::var("STAYPUT_CYCLES") {
        Ok(number) => number.parse().expect("STAYPUT_CYCLES is a number"),
        // Elasticsearch takes three times as long to start.
        Err(_) if node.kind == Kind::Elasticsearch => 2,
        Err(_) => 3,
    };
    let manager = node.launch().start();
    let first = manager.api.until_ready();
    for cycle in 1..=cycles {
        step(&format!("cycle {cycle}"));
        node.index(cycle);
        manager.api.stop();
        node.assert_gone(&manager);
        let checksum = node.swap(&format!("node.attr.stayput: cycle-{cycle}"));
        let status = manager.api.start(&json!({ "checksum": checksum }));
        assert_eq!(status["run"]["checksum"], json!(checksum));
        assert_eq!(node.attribute(), format!("cycle-{cycle}"));
        assert_eq!(node.count(), cycle);
        assert_eq!(status["manager"]["boot_id"], first["manager"]["boot_id"]);
        assert_eq!(status["manager"]["pid"], 1);
    }
}
