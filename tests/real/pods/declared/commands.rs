//! `kubectl stayput` on a declared cluster.

use std::time::Instant;

use super::STAYPUT;
use crate::pods::fixture::Fixture;
use crate::pods::nodes::{observe_all, until_formed};
use crate::support::wait::eventually;

/// Runs a command until it prints each of these parts. Pages that differ are shown.
fn until_prints(fixture: &Fixture, line: &str, parts: &[&str]) {
    let mut shown = String::new();
    eventually(&format!("{line} prints {parts:?}"), || {
        let page = fixture.people.run(&format!("kubectl stayput -n search {line}"));
        if page != shown {
            println!("$ kubectl stayput {line}\n{page}");
        }
        shown = page;
        parts.iter().all(|part| shown.contains(part)).then_some(())
    });
}

/// Makes a change of the engine's config and of the pods' labels while the cluster is paused: it is
/// shown, as a restart for the config that brings the label along, and nothing is restarted. Then it
/// is carried out.
pub(super) fn paused_and_resumed(fixture: &Fixture, change: impl FnOnce()) {
    let before = observe_all(fixture, STAYPUT);
    until_prints(fixture, "pause logs", &["logs is paused"]);
    change();
    let restart = ["logs-all-0   restart", "the config", "(relabel)", "metadata.labels.team"];
    until_prints(fixture, "diff logs", &restart);
    let restart = "restart, keeps container, pod, address and volumes: the config; ";
    let shown = format!("logs-all-0: {restart}");
    until_prints(fixture, "status logs", &["phase       Paused", &shown, "metadata.labels.team"]);
    until_prints(fixture, "why logs-all-0", &[restart, "metadata.labels.team"]);
    let steps = ["blocked by  paused", "logs-all-0", "logs-all-1", "logs-all-2"];
    until_prints(fixture, "plan logs", &steps);
    for (name, node) in observe_all(fixture, STAYPUT) {
        assert_eq!(node.run(), before[&name].run(), "{name} was restarted");
    }
    until_prints(fixture, "resume logs", &["logs"]);
    eventually("a restart begins", || {
        let logs = fixture.logs();
        logs["status"]["ledger"]["handled"].as_array().filter(|all| !all.is_empty()).map(drop)
    });
    until_prints(fixture, "watch logs --timeout 15m", &["done"]);
    fixture.until_idle();
    until_prints(fixture, "diff logs", &["logs-all-0   none", "logs-all-2   none"]);
    until_prints(fixture, "history logs", &["done"]);
    let path = "jsonpath={.items[*].metadata.labels.team}";
    let teams = fixture.run(&["get", "pods", "--selector=app=logs", "--output", path]);
    assert_eq!(teams, "a a a");
}

/// One engine is stopped, stays so, and is started: in the same container.
pub(super) fn stopped_and_started(fixture: &Fixture) {
    const NODE: &str = "logs-all-1";
    let began = Instant::now();
    let before = observe_all(fixture, STAYPUT);
    until_prints(fixture, &format!("stop {NODE}"), &["2 of 3 nodes of logs serve"]);
    let state = || observe_all(fixture, STAYPUT)[NODE].status["state"].clone();
    eventually("the engine is stopped", || (state() == "stopped").then_some(()));
    until_prints(fixture, "status logs", &["stopped"]);
    until_prints(fixture, &format!("start {NODE}"), &["will be started"]);
    eventually("the engine runs", || (state() == "running").then_some(()));
    until_formed(&before);
    fixture.until_idle();
    for (name, node) in observe_all(fixture, STAYPUT) {
        assert_eq!(node.stays, before[&name].stays, "{name} is another pod or container");
        assert_eq!(node.run() == before[&name].run(), name != NODE, "{name}");
    }
    println!("{NODE} stopped and started: {} ms", began.elapsed().as_millis());
}
