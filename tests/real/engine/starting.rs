//! Events during the seconds that a JVM needs to start.

use nix::sys::signal::Signal;
use serde_json::json;

use super::{on_engine, step};
use crate::support::engine::Node;
use crate::support::manager::Manager;
use crate::support::wait::eventually;

on_engine!(opensearch, OpenSearch, [ended_stopped_and_swapped_while_it_starts]);
on_engine!(elasticsearch, Elasticsearch, [ended_stopped_and_swapped_while_it_starts]);

// proves STOP-8, CONFIG-8
fn ended_stopped_and_swapped_while_it_starts(mut node: Node) {
    let old = node.swap("node.attr.stayput: old");
    let mut manager = node.launch().start();
    until_jvm(&manager);
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.wait(), 143, "the code of a JVM that TERM ended");

    step("the next container starts it: no stop was requested. It is stopped while it starts");
    let mut launch = node.launch();
    launch = launch.options(["--grace", "60s"]);
    let mut manager = launch.start();
    until_jvm(&manager);
    let status = manager.api.stop();
    assert_eq!(status["last_exit"]["reason"], "stopped", "{status:#}");
    manager.assert_alone();
    assert_eq!(status["ready"], false);

    step("a stop that overtakes a start");
    let accepted = manager.api.post("/es/start", &json!({ "sequence": 10 })).expect(202);
    assert_eq!(accepted["state"], "starting");
    let status = manager.api.post("/es/stop?wait=5m", &json!({ "sequence": 11 })).expect(200);
    assert_eq!((&status["state"], &status["sequence"]), (&json!("stopped"), &json!(11)));
    manager.assert_alone();

    step("a start that comes too late is refused");
    manager.api.post("/es/start", &json!({ "sequence": 10 })).expect_problem(409, "stale_sequence");
    manager.assert_alone();

    step("another config is mounted while it starts");
    manager.api.post("/es/start", &json!({ "sequence": 12 })).expect(202);
    until_jvm(&manager);
    let new = node.swap("node.attr.stayput: new");
    assert_eq!(manager.api.status()["ready"], false, "the swap came before it was ready");
    let status = manager.api.until_ready();

    step("it runs on one generation, the one it was started with, and drift is shown");
    assert_eq!(status["run"]["checksum"], json!(old));
    assert_eq!(status["config"]["checksum"], json!(new));
    assert_eq!(
        (&status["config"]["drift"], &status["run"]["config_uncertain"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(node.attribute(), "old");
    manager.api.post("/es/start", &json!({ "checksum": new })).expect_problem(409, "wrong_config");

    step("TERM to a stopped manager is no failure");
    manager.api.stop();
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.wait(), 0);
}

/// Not only the script: the JVM exists, and has installed no handler yet or has just done so.
fn until_jvm(manager: &Manager) {
    eventually("a JVM", || {
        manager.guests().iter().any(|guest| guest.command.contains("/bin/java ")).then_some(())
    });
}
