//! Which indices are searchable snapshots.

use super::super::EngineError;
use super::*;

#[test] // proves RULE-5
fn only_indices_in_a_repository_are_searchable_snapshots() {
    // As Elasticsearch 8 and OpenSearch 2 write them; an index without the setting is left out.
    let body = r#"{
        "restored-logs": {"settings": {"index.store.type": "snapshot"}},
        "partial-.ds-logs-000001": {"settings": {"index.store.type": "snapshot"}},
        "old": {"settings": {"index.store.type": "remote_snapshot"}},
        "mapped": {"settings": {"index.store.type": "hybridfs"}},
        "plain": {"settings": {}}
    }"#;
    let found = crate::shards::parse_store_types(&made_up(200, body)).expect("it is read");
    let names: Vec<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(names, ["old", "partial-.ds-logs-000001", "restored-logs"]);
    assert!(crate::shards::parse_store_types(&made_up(200, "{}")).expect("it is read").is_empty());
}

#[test] // proves RULE-5
fn a_mounted_snapshot_is_one_and_an_index_beside_it_is_not_in_the_answer() {
    let call = crate::shards::store_types_call();
    let found = crate::shards::parse_store_types(&answer_to(&call, OPENSEARCH_2, "store_types"));
    assert_eq!(found.expect("it is read"), ["mounted-docs".to_owned()].into());
}

#[test]
fn the_question_is_about_one_setting_of_all_indices() {
    let (line, body) = crate::shards::store_types_call().as_recorded();
    let asked = "GET /_all/_settings/index.store.type?expand_wildcards=all&flat_settings=true\
                 &master_timeout=7500ms";
    assert_eq!((line.as_str(), body.as_str()), (asked, ""));
}

#[test]
fn an_account_that_may_not_ask_is_told() {
    let answer = recorded(ELASTICSEARCH_8, "forbidden");
    assert!(matches!(crate::shards::parse_store_types(&answer), Err(EngineError::Unauthorized(_))));
}
