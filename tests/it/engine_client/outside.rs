//! Nodes that are outside of their cluster and answer all the same, beside one that is a member.

use serde_json::{Value, json};
use stayput_engine::{Access, Color, Distribution, Engine, EngineError};

use super::{ENGINE_ANSWER_TIMEOUT, answering, client, health, identity_of_nobody, wait};
use crate::support::fake_manager::{FakeManager, Reply, Script};

const OURS: &str = r#"{"restart":"r-1"}"#;

/// Every answer of a member in one.
fn whole() -> Value {
    json!({
        "cluster_uuid": "HHHrgapGQyCXt6wo3163vQ", "version": 8, "master_node": "n",
        "nodes": { "n": {
            "name": "logs-1", "ephemeral_id": "e", "transport_address": "127.0.0.1:9300",
            "version": "2.19.3", "roles": ["data"], "jvm": { "start_time_in_millis": 1 },
        } },
        "metadata": { "cluster_coordination": {
            "last_committed_config": ["n"], "last_accepted_config": ["n"],
        } },
        "routing_table": { "indices": { "docs": { "shards": { "0": [
            { "state": "STARTED", "primary": true, "node": "n", "relocating_node": null },
        ] } } } },
        "persistent": {
            "cluster.metadata.stayput": OURS,
            "cluster.routing.allocation.exclude._name": "theirs",
        },
        "transient": {},
    })
}

fn member() -> (FakeManager, u16) {
    answering(200, whole())
}

/// Elasticsearch 9.2 without a master: the state that the node knew last, and nothing that says that it
/// is old but that it names no master.
fn led_by_nobody() -> Value {
    let mut state = whole();
    state["master_node"] = Value::Null;
    state["nodes"]["gone"] = state["nodes"]["n"].clone();
    state["blocks"] = json!({ "global": { "2": { "description": "no master" } } });
    state
}

/// Elasticsearch 9.0 that has not joined: it waits for a master in vain, and has no settings.
fn not_joined(path: &str) -> Reply {
    match path {
        "/_cluster/settings" => Reply::json(200, json!({ "persistent": {}, "transient": {} })),
        _ => Reply::json(503, json!({ "error": { "type": "master_not_discovered_exception" } })),
    }
}

/// An Elasticsearch whose nodes answer from their own states.
fn identified() -> Engine {
    let version = "9.2.0".parse().expect("a version");
    Engine { distribution: Distribution::Elasticsearch, version, ..opensearch() }
}

fn opensearch() -> Engine {
    let (_fake, port) = answering(200, identity_of_nobody());
    let client = client(&[port], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    wait(client.identify()).expect("an engine")
}

fn paths(fake: &FakeManager) -> Vec<String> {
    let path = |line: &str| line.split(['?', ' ']).nth(1).unwrap_or_default().to_owned();
    fake.seen().iter().map(|seen| path(&seen.line)).collect()
}

#[test] // proves RESTART-113
fn a_state_without_a_master_is_not_taken_while_another_node_has_one() {
    let engine = identified();
    let (alone, first) = answering(200, led_by_nobody());
    let (_member, second) = member();
    let client = client(&[first, second], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    let topology = wait(client.topology(&engine, None)).expect("a topology");
    assert_eq!((topology.elected_master.as_deref(), topology.nodes.len()), (Some("n"), 1));
    assert_eq!((topology.shards.len(), topology.recovered), (1, true));
    assert_eq!(alone.seen().len(), 1, "{:?}", paths(&alone));
    assert_eq!(wait(client.members()).expect("members").nodes.len(), 1);
}

#[test] // proves RESTART-113
fn nodes_that_all_have_no_master_are_a_refusal() {
    let engine = identified();
    let (_alone, port) = answering(200, led_by_nobody());
    let client = client(&[port], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    let refused = |error: EngineError| match error {
        EngineError::Refused { message, .. } => {
            assert!(message.contains("it has no elected master"), "{message}");
            assert!(message.contains(&format!("127.0.0.1:{port}")), "{message}");
        }
        other => panic!("{other:?}"),
    };
    refused(wait(client.topology(&engine, None)).expect_err("no topology"));
    refused(wait(client.members()).expect_err("no members"));
    refused(wait(client.allocation(&engine)).expect_err("no settings"));
}

#[test] // proves RESTART-113
fn settings_are_those_of_a_node_that_has_a_master() {
    let engine = identified();
    for script in [Script::ByPath(not_joined), Script::Always(Reply::json(200, led_by_nobody()))] {
        let (_outside, first) = FakeManager::on_port(None, script);
        let (_member, second) = member();
        let client = || client(&[first, second], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
        let allocation = wait(client().allocation(&engine)).expect("settings");
        assert_eq!(allocation.marker.as_deref(), Some(OURS));
        assert_eq!(allocation.excluded.persistent.as_deref(), Some("theirs"));
    }
}

#[test]
fn which_master_a_node_follows_is_not_asked_where_the_master_answers() {
    let engine = opensearch();
    let (member, port) = member();
    let client = client(&[port], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    let allocation = wait(client.allocation(&engine)).expect("settings");
    assert_eq!(allocation.marker.as_deref(), Some(OURS));
    assert_eq!(paths(&member), ["/_cluster/settings"]);
}

/// It answers what is small, and has no memory for all copies.
fn short_of_memory(path: &str) -> Reply {
    match path {
        "/_cluster/state/routing_table,blocks" => Reply::json(
            429,
            json!({ "error": { "type": "circuit_breaking_exception", "reason": "too large" } }),
        ),
        _ => Reply::json(200, whole()),
    }
}

#[test] // proves RESTART-113
fn copies_are_read_where_the_nodes_were_and_the_next_look_begins_elsewhere_if_that_fails() {
    let engine = identified();
    let (full, first) = FakeManager::on_port(None, Script::ByPath(short_of_memory));
    let (member, second) = member();
    let client = client(&[first, second], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    let failed = wait(client.topology(&engine, None)).expect_err("no copies");
    assert!(failed.to_string().contains("circuit_breaking_exception"), "{failed}");
    assert!(paths(&full).iter().any(|path| path.contains("routing_table")));
    assert!(!paths(&member).iter().any(|path| path.contains("routing_table")));
    assert_eq!(wait(client.topology(&engine, None)).expect("a topology").shards.len(), 1);
}

#[test] // proves RESTART-159
fn a_read_that_one_node_refuses_alone_is_answered_by_another() {
    let refusal =
        |code| json!({ "error": { "type": "a_refusal", "reason": format!("for {code}") } });
    for code in [401, 429, 500] {
        let (refusing, first) = answering(code, refusal(code));
        let (_member, second) = answering(200, health());
        let both = client(&[first, second], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
        assert_eq!(wait(both.health()).expect("health").color, Color::Green, "{code}");
        wait(both.health()).expect("health");
        assert_eq!(refusing.seen().len(), 1, "{code}");
    }
}

#[test] // proves RESTART-159
fn what_every_node_refuses_is_told_in_the_words_of_the_first() {
    let (_one, first) = answering(401, json!({ "error": "one" }));
    let (_other, second) = answering(503, json!({ "error": "other" }));
    let client = client(&[first, second], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    let Err(EngineError::Unauthorized(why)) = wait(client.health()) else { panic!("a health") };
    assert!(why.contains("(HTTP 401): one; check the credentials"), "{why}");
    assert!(why.contains("its index .security is not available yet"), "{why}");
}
