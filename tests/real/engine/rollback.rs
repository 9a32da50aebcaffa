//! A config that the engine refuses, the rollback, and that the rollback is remembered.

use serde_json::json;

use super::{on_engine, step};
use crate::support::engine::Node;

on_engine!(opensearch, OpenSearch, [rolled_back_to_the_last_good_config]);
on_engine!(elasticsearch, Elasticsearch, [a_config_that_it_refuses_is_held]);

// proves CONFIG-9
fn rolled_back_to_the_last_good_config(mut node: Node) {
    let manager = node.launch().start();
    let good = manager.api.until_ready()["run"]["checksum"].clone();
    manager.api.status_when("the good config is kept", |s| s["config"]["last_good"] == good);
    manager.api.stop();

    step("the engine refuses a setting: held, with its code, and reported to the caller");
    let bad = node.swap("node.attr.stayput: bad\nno.such.setting: true");
    let answer = manager.api.post("/es/start?wait=5m", &json!({ "checksum": bad }));
    let problem = answer.expect_problem(503, "start_failed");
    let status = manager.api.status();
    assert_eq!((&status["state"], &status["desired"]), (&json!("failed"), &json!("running")));
    let exit = &status["last_exit"];
    assert!(exit["code"].as_i64().is_some_and(|code| code != 0), "{exit:#}");
    assert_eq!(exit["reason"], "exited");
    let code = exit["code"].to_string();
    assert!(problem["detail"].as_str().is_some_and(|text| text.contains(&code)), "{problem:#}");
    assert!(status["reason"]["message"].as_str().is_some_and(|text| text.contains(&code)));
    manager.assert_alone();

    step("held also by the next container, once that is written down");
    manager.api.status_when("written down", |status| status["manager"]["durable"] == true);
    manager.kill();
    let manager = node.launch().start();
    assert_eq!(manager.api.until_state("failed")["last_exit"], *exit);
    manager.assert_alone();

    step("the last good config runs, and drift stays visible");
    let status = manager.api.start(&json!({ "config": "last_good" }));
    let run = &status["run"];
    assert_eq!((&run["config"], &run["checksum"]), (&json!("last_good"), &good));
    assert_eq!(status["config"]["drift"], true);
    assert_eq!(node.attribute(), "first");

    step("the next container starts the last good one again, not the bad one");
    manager.kill();
    let manager = node.launch().start();
    let status = manager.api.until_ready();
    let run = &status["run"];
    assert_eq!((&run["config"], &run["checksum"]), (&json!("last_good"), &good));
    assert_eq!((&status["config"]["drift"], &status["starts"]), (&json!(true), &json!(1)));
    assert_eq!(node.attribute(), "first");

    step("a mended config ends the rollback");
    let mended = node.swap("node.attr.stayput: mended");
    manager.api.stop();
    let status = manager.api.start(&json!({ "checksum": mended }));
    assert_eq!(status["run"]["config"], "mounted");
    assert_eq!(node.attribute(), "mended");
}

/// Its launcher ends after its server, with a code of its own.
fn a_config_that_it_refuses_is_held(mut node: Node) {
    node.swap("node.attr.stayput: bad\nno.such.setting: true");
    let manager = node.launch().start();
    let status = manager.api.until_state("failed");
    let exit = &status["last_exit"];
    assert!(exit["code"].as_i64().is_some_and(|code| code != 0), "{exit:#}");
    assert_eq!(exit["reason"], "exited");
    let code = exit["code"].to_string();
    assert!(status["reason"]["message"].as_str().is_some_and(|text| text.contains(&code)));
    assert_eq!(status["desired"], "running");
    manager.assert_alone();
}
