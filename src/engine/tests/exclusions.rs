//! Voting exclusions: the requests for each kind of engine.

use super::super::{Distribution, Engine, EngineError, Version};
use super::*;

fn engine_of(distribution: Distribution, version: &str) -> Engine {
    let version: Version = version.parse().unwrap();
    Engine {
        distribution,
        version,
        cluster_name: "logs".into(),
        cluster_uuid: None,
        node_name: "logs-0".into(),
        has_node_shutdown: false,
    }
}

#[test]
fn each_engine_is_asked_as_it_understands() {
    let by_name = "POST /_cluster/voting_config_exclusions?node_names=logs-0&timeout=7500ms";
    let in_path = "POST /_cluster/voting_config_exclusions/logs-0?timeout=7500ms";
    let all = "DELETE /_cluster/voting_config_exclusions?wait_for_removal=false";
    for (distribution, version, expected) in [
        (Distribution::Elasticsearch, "7.0.1", in_path),
        (Distribution::Elasticsearch, "7.7.1", in_path),
        (Distribution::Elasticsearch, "7.8.0", by_name),
        (Distribution::Elasticsearch, "7.17.29", by_name),
        (Distribution::Elasticsearch, "8.19.0", by_name),
        (Distribution::Elasticsearch, "9.1.0", by_name),
        (Distribution::OpenSearch, "1.3.20", by_name),
        (Distribution::OpenSearch, "2.19.3", by_name),
        (Distribution::OpenSearch, "3.2.0", by_name),
    ] {
        let engine = engine_of(distribution, version);
        let asked = crate::changes::exclude_call(&engine, "logs-0").unwrap();
        assert_eq!(asked.as_recorded(), (expected.into(), String::new()), "{version}");
        let cleared = crate::changes::clear_call(&engine).unwrap();
        assert_eq!(cleared.as_recorded(), (all.into(), String::new()), "{version}");
    }
}

#[test]
fn elasticsearch_6_has_no_votes_to_do_without() {
    let six = engine_of(Distribution::Elasticsearch, "6.8.23");
    for call in [crate::changes::exclude_call(&six, "logs-0"), crate::changes::clear_call(&six)] {
        let Err(EngineError::Unusable(message)) = call else { panic!("{call:?}") };
        assert!(message.contains("minimum_master_nodes"), "{message}");
    }
}

#[test]
fn no_name_reaches_other_nodes() {
    let engine = engine_of(Distribution::OpenSearch, "2.19.3");
    for name in ["", "*", "logs-*", "logs-0,logs-1", "_all", "_local", "a/b", "a b", "a&b", "ä"] {
        let call = crate::changes::exclude_call(&engine, name);
        assert!(matches!(call, Err(EngineError::Unusable(_))), "{name}: {call:?}");
    }
    for name in ["logs-0", "logs_0.search"] {
        assert!(crate::changes::exclude_call(&engine, name).is_ok(), "{name}");
    }
}

#[test]
fn an_empty_body_is_enough_and_so_is_one_that_takes_effect_late() {
    for body in ["", "{}"] {
        assert_eq!(crate::changes::parse_exclusion(&made_up(200, body)), Ok(()));
    }
    let late = |reason| {
        let error = serde_json::json!({ "type": "timeout_exception", "reason": reason });
        serde_json::json!({ "error": error }).to_string()
    };
    for status in [429, 500, 503] {
        let body = late("timed out waiting for voting config exclusions [{logs-0}] to take effect");
        assert_eq!(crate::changes::parse_exclusion(&made_up(status, &body)), Ok(()), "{status}");
        let other = crate::changes::parse_exclusion(&made_up(status, &late("timed out")));
        assert!(matches!(other, Err(EngineError::Refused { .. })), "{other:?}");
    }
}
