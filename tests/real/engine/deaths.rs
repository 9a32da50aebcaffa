//! An engine that another process kills, completely or in part.

use nix::sys::signal::Signal;
use serde_json::json;

use super::{on_engine, step};
use crate::support::engine::Node;

on_engine!(opensearch, OpenSearch, [killed_and_restarted_in_place]);
// With OpenSearch, launcher and server are one process.
on_engine!(elasticsearch, Elasticsearch, [launcher_or_server_killed_alone]);

// proves STOP-2
fn launcher_or_server_killed_alone(node: Node) {
    let manager = node.launch().start();
    manager.api.until_ready();
    node.launcher(&manager).signal(Signal::SIGKILL);

    step("the server does not outlive it, and the end is reported correctly");
    let status = manager.api.until_state("failed");
    let exit = &status["last_exit"];
    assert_eq!((&exit["signal"], &exit["reason"]), (&json!(9), &json!("killed")), "{exit:#}");
    assert_eq!((&status["desired"], &status["run"]), (&json!("running"), &json!(null)));
    node.assert_gone(&manager);

    step("it can be started again at once");
    manager.api.start(&json!({}));
    assert_eq!(node.attribute(), "first");
    node.server(&manager).signal(Signal::SIGKILL);

    step("the launcher follows, with a code of its own: it passes on how its server ended");
    let status = manager.api.until_state("failed");
    let exit = &status["last_exit"];
    assert_eq!((&exit["code"], &exit["signal"]), (&json!(137), &json!(null)), "{exit:#}");
    assert_eq!(exit["reason"], "killed", "{exit:#}");
    node.assert_gone(&manager);
}

fn killed_and_restarted_in_place(node: Node) {
    let manager = node.launch().on_exit("restart").start();
    let first = manager.api.until_ready();
    node.index(1);
    node.server(&manager).signal(Signal::SIGKILL);

    step("it comes back by itself, on the same data");
    let waiting = manager
        .api
        .status_when("it has ended", |status| status["last_exit"]["run"] == first["run"]["id"]);
    assert_eq!(waiting["ready"], false, "an engine that is gone is not ready");
    let exit = &waiting["last_exit"];
    assert_eq!((&exit["signal"], &exit["reason"]), (&json!(9), &json!("killed")), "{exit:#}");
    let status = manager.api.status_when("another run is ready", |status| {
        status["ready"] == true && status["run"]["id"] != first["run"]["id"]
    });
    assert_eq!(status["manager"]["boot_id"], first["manager"]["boot_id"]);
    assert_eq!(node.count(), 1);
}
