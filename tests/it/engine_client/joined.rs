//! A node that is to join is waited for at two nodes: the elected master applies a new list last.

use serde_json::{Value, json};
use stayput_engine::{Access, Distribution, Engine, Version};

use super::{ENGINE_ANSWER_TIMEOUT, answering, client, health, wait};
use crate::support::fake_manager::{FakeManager, Reply, Script};

fn engine() -> Engine {
    Engine {
        distribution: Distribution::OpenSearch,
        version: Version { major: 2, minor: 19, patch: 3 },
        cluster_name: "logs".into(),
        cluster_uuid: Some("uuid".into()),
        node_name: "n0".into(),
        has_node_shutdown: false,
    }
}

/// Health or state, with this master.
fn reply(path: &str, master: Option<&str>) -> Reply {
    let node = json!({ "name": "n0", "ephemeral_id": "e0", "transport_address": "10.0.0.7:9300" });
    let coordination = json!({ "last_committed_config": ["a"], "last_accepted_config": ["a"] });
    let state = json!({
        "cluster_uuid": "uuid", "version": 7, "master_node": master, "nodes": { "a": node },
        "metadata": { "cluster_coordination": coordination },
    });
    Reply::json(200, if path.starts_with("/_cluster/health") { health() } else { state })
}

#[test] // proves RESTART-41
fn the_first_of_two_nodes_tells_its_own_list() {
    let silent = || FakeManager::on_port(None, Script::Silence);
    let (elected, third) = (silent(), silent());
    let (follower, port) =
        FakeManager::on_port(None, Script::ByPath(|path| reply(path, Some("a"))));
    let three = client(&[elected.1, port, third.1], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    let listed = wait(three.listed_first(&engine(), 3)).expect("nodes").expect("in time");
    assert_eq!(listed.nodes[0].ephemeral_id, "e0");
    let lines: Vec<String> = follower.seen().into_iter().map(|seen| seen.line).collect();
    assert_eq!(
        lines[0],
        "GET /_cluster/health?wait_for_nodes=ge(3)&timeout=1s&master_timeout=22500ms&local=true"
    );
    assert!(lines[1].starts_with("GET /_cluster/state/"), "{lines:?}");
    assert!(lines[1].ends_with("&local=true"), "{lines:?}");
    assert!(third.0.seen().is_empty());
}

#[test] // proves RESTART-41
fn a_node_that_has_lost_its_master_is_not_believed_and_the_other_one_is_waited_for() {
    let node = |master: fn(&str) -> Reply| FakeManager::on_port(None, Script::ByPath(master));
    let lost = || node(|path| reply(path, None));
    let (alone, one) = (lost(), lost());
    let alone = client(&[alone.1], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    let refused = wait(alone.listed_first(&engine(), 3)).expect_err("no list");
    assert!(refused.to_string().contains("no elected master"), "{refused}");
    let other = node(|path| reply(path, Some("a")));
    let both = client(&[one.1, other.1], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    assert!(wait(both.listed_first(&engine(), 3)).expect("nodes").is_some());
}

#[test] // proves RESTART-41
fn there_is_no_list_if_nobody_has_joined_in_time() {
    let mut fewer: Value = health();
    fewer["timed_out"] = json!(true);
    let (_alone, port) = answering(408, fewer);
    let client = client(&[port], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    assert_eq!(wait(client.listed_first(&engine(), 3)).expect("nodes"), None);
}
