//! Allocation, flush and shutdown records, read from recorded answers.

use std::time::Duration;

use super::super::transport::MASTER_TIMEOUT;
use super::super::{EngineError, Flush, RecordKind, RecordStatus, ShardMigration, shutdown};
use super::*;
use crate::changes::Allocation;

/// The marker that was set in the recordings.
const MARK: &str = r#"{"restart":"r-1","before":{"persistent":null,"transient":null}}"#;

fn set(persistent: Option<&str>, transient: Option<&str>, marker: Option<&str>) -> Allocation {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Allocation {
        persistent: owned(persistent),
        transient: owned(transient),
        marker: owned(marker),
        ..Allocation::default()
    }
}

#[test]
fn allocation_is_read_with_the_mark() {
    let read = crate::changes::read_call();
    for engine in ALL {
        let read =
            |name| crate::changes::parse_allocation(&answer_to(&read, engine, name)).unwrap();
        assert_eq!(read("settings_unset"), set(None, None, None));
        assert_eq!(read("settings_tight"), set(Some("primaries"), None, Some(MARK)));
        let both = set(Some("primaries"), Some("primaries"), Some(MARK));
        assert_eq!(read("settings_transient"), both, "{engine}");
    }
}

#[test]
fn it_is_tightened_and_restored_with_the_mark_in_one_request() {
    let unset = set(None, None, None);
    let transient = set(None, Some("all"), None);
    for engine in ALL {
        let write = |body, name| {
            let call = crate::changes::write_call(body, MASTER_TIMEOUT);
            answer_to(&call, engine, name).acknowledged()
        };
        let tightened = |before| crate::changes::tightened(before, "primaries", MARK);
        assert_eq!(write(tightened(&unset), "tighten"), Ok(()));
        assert_eq!(write(tightened(&transient), "tighten_transient"), Ok(()));
        assert_eq!(write(crate::changes::restored(&unset), "restore"), Ok(()));
    }
    let before = set(Some("new_primaries"), Some("all"), None);
    let expected = serde_json::json!({
        "persistent": {
            "cluster.routing.allocation.enable": "new_primaries",
            "cluster.metadata.stayput": null,
        },
        "transient": { "cluster.routing.allocation.enable": "all" },
    });
    assert_eq!(crate::changes::restored(&before), expected);
}

#[test]
fn a_refused_value_is_told_in_the_engines_words() {
    for engine in ALL {
        let call = crate::changes::write_call(
            crate::changes::tightened(&set(None, None, None), "most", MARK),
            MASTER_TIMEOUT,
        );
        let refused = answer_to(&call, engine, "tighten_refused").acknowledged();
        let Err(EngineError::Refused { status, message, .. }) = refused else {
            panic!("{engine}: {refused:?}");
        };
        assert_eq!(status, 400);
        assert!(message.contains("MOST"), "{message}");
        assert!(message.contains("PUT /_cluster/settings refused (HTTP 400)"), "{message}");
    }
}

#[test] // proves RESTART-15
fn a_late_node_does_not_undo_what_is_set() {
    let late = r#"{"acknowledged":false,"persistent":{},"transient":{}}"#;
    assert_eq!(made_up(200, late).acknowledged(), Ok(()));
    assert!(made_up(200, "{}").acknowledged().is_err());
}

#[test]
fn flushes_tell_what_they_did() {
    for (engine, name, synced, successful) in [
        (OPENSEARCH_2, "flush", false, 10),
        (OPENSEARCH_3, "flush", false, 5),
        (ELASTICSEARCH_6, "flush_synced", true, 10),
        (ELASTICSEARCH_7, "flush", false, 10),
        (ELASTICSEARCH_8, "flush", false, 10),
        (ELASTICSEARCH_9, "flush", false, 10),
    ] {
        let answer = answer_to(&crate::changes::flush_call(synced), engine, name);
        let done = Flush::Done { synced, total: 11, successful, failed: 0 };
        assert_eq!(crate::changes::parse_flush(&answer, synced), Ok(done), "{engine}");
    }
}

#[test]
fn a_synced_flush_that_writes_disturbed_is_done_as_far_as_it_went() {
    let body = r#"{"_shards":{"total":4,"successful":2,"failed":2},
        "docs":{"total":4,"successful":2,"failed":2,
                "failures":[{"shard":1,"reason":"[2] ongoing operations on primary"}]}}"#;
    let done = Flush::Done { synced: true, total: 4, successful: 2, failed: 2 };
    assert_eq!(crate::changes::parse_flush(&made_up(409, body), true), Ok(done));
    assert!(crate::changes::parse_flush(&made_up(409, body), false).is_err());
}

#[test]
fn records_are_put_listed_and_deleted() {
    const NODE: &str = "9t0mVw76RJSDpR7kNYI42g";
    let put = shutdown::put_call(NODE, "stayput r-1", Duration::from_secs(20 * 60)).unwrap();
    let recorded = |call: &Call, name| answer_to(call, ELASTICSEARCH_8, name);
    assert_eq!(recorded(&put, "record_put").acknowledged(), Ok(()));
    let records = shutdown::parse_list(&recorded(&shutdown::list_call(), "records")).unwrap();
    let [record] = &records[..] else { panic!("{records:?}") };
    assert_eq!((record.node_id.as_str(), record.reason.as_str()), (NODE, "stayput r-1"));
    assert_eq!((record.kind, record.status), (RecordKind::Restart, RecordStatus::Complete));
    let migration = ShardMigration {
        status: RecordStatus::Complete,
        explanation: Some("no shard relocation is necessary for a node restart".into()),
    };
    assert_eq!(record.shard_migration, Some(migration));
    let delete = shutdown::delete_call(NODE).unwrap();
    assert_eq!(shutdown::parse_deleted(&recorded(&delete, "record_delete")), Ok(()));
    let again = recorded(&delete, "record_delete_again");
    assert_eq!((again.status, shutdown::parse_deleted(&again)), (404, Ok(())));
    let none = shutdown::parse_list(&recorded(&shutdown::list_call(), "records_none"));
    assert_eq!(none, Ok(vec![]));
}

#[test] // proves RESTART-162
fn what_the_engine_has_not_prepared_yet_is_named() {
    let body = r#"{"nodes":[{"node_id":"a","type":"RESTART","reason":"r1","status":"IN_PROGRESS",
        "shard_migration":{"status":"COMPLETE"},"persistent_tasks":{"status":"COMPLETE"},
        "plugins":{"status":"IN_PROGRESS"}}]}"#;
    let records = shutdown::parse_list(&made_up(200, body)).unwrap();
    assert_eq!(records[0].preparing().collect::<Vec<_>>(), ["plugins"]);
    let complete = shutdown::parse_list(&recorded(ELASTICSEARCH_8, "records")).unwrap();
    assert_eq!(complete[0].preparing().count(), 0);
}

#[test]
fn other_peoples_records_are_told_apart() {
    let body = r#"{"nodes":[
        {"node_id":"b","type":"REMOVE","reason":"ECK","status":"IN_PROGRESS"},
        {"node_id":"a","type":"SIGTERM","status":"STALLED"},
        {"node_id":"c","type":"ELOPE","reason":"","status":"PLANNED"}]}"#;
    let records = shutdown::parse_list(&made_up(200, body)).unwrap();
    let kinds: Vec<_> = records
        .iter()
        .map(|record| (record.node_id.as_str(), record.kind, record.status))
        .collect();
    assert_eq!(
        kinds,
        [
            ("a", RecordKind::Sigterm, RecordStatus::Stalled),
            ("b", RecordKind::Remove, RecordStatus::InProgress),
            ("c", RecordKind::Unknown, RecordStatus::Unknown),
        ]
    );
}

#[test]
fn what_is_no_id_reaches_no_node() {
    for id in ["", "_local", "_all", "logs-*,logs-0,logs-1", "9t0mVw76RJSDpR7kNY/42g", "a b"] {
        let refused = shutdown::delete_call(id);
        assert!(matches!(refused, Err(EngineError::Unusable(_))), "{id}");
    }
}
