//! Aborted restarts leave the cluster as it was: every engine runs, allocation is as before, and
//! the reason is reported.

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use stayput_restart::Outcome;

use super::fixture::{Fixture, NAMES, NodeFacts, until};
use super::{load, on, step};
use crate::support::cluster::Flavor;

#[test] // proves RESTART-29
fn brought_back() {
    on("aborts::brought_back", Flavor::OpenSearch, story);
}

fn story(fixture: Fixture) {
    load::create(fixture.nodes()[0]);
    fixture.until_formed();
    let settings = fixture.settings();
    secret_never_arrives(&fixture);
    will_not_start(&fixture);
    frozen(&fixture);
    half_of_all(&fixture);
    assert_eq!(fixture.settings(), settings);
    assert!(fixture.status().ledger.debts.is_empty());
}

fn condition(fixture: &Fixture, kind: &str) -> Value {
    let status = serde_json::to_value(fixture.status()).expect("JSON");
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|one| one["type"] == kind).unwrap_or_default()
}

/// The node runs in the same process, and no record keeps it stopped.
#[track_caller]
fn assert_untouched(was: &NodeFacts, is: &NodeFacts) {
    assert_eq!(was, is);
}

/// The volume does not change, so the engine is never stopped.
fn secret_never_arrives(fixture: &Fixture) {
    step("a config that never arrives in the volume");
    fixture.policy(&json!({ "phaseTimeout": "10s", "drain": "0s" }));
    let before = fixture.facts();
    fixture.kubelet.set_frozen("logs-1", true);
    fixture.configure("logs-1", "node.attr.stayput: lost", str::to_owned);
    fixture.ask("lost", "rolling", &["logs-1"]);
    let entry = fixture.until_over("lost");
    println!("{entry:?}");
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Aborted, 0), "{entry:?}");
    assert!(entry.reason.contains("not mounted"), "{entry:?}");
    let last = fixture.last_restart("logs-1");
    assert_eq!((last.id.as_str(), last.outcome), ("lost", Outcome::Aborted));
    assert_untouched(&before["logs-1"], &fixture.facts()["logs-1"]);
    fixture.configure("logs-1", "node.attr.stayput: first", str::to_owned);
    fixture.kubelet.set_frozen("logs-1", false);
    fixture.until_formed();
}

/// The engine refuses its config, and is started with the last good one at once.
fn will_not_start(fixture: &Fixture) {
    step("an engine that will not start");
    fixture.policy(&json!({ "phaseTimeout": "90s" }));
    let before = fixture.facts();
    let bad = fixture.configure("logs-2", "no.such.setting: true", str::to_owned);
    fixture.ask("bad", "rolling", &["logs-2"]);
    let entry = fixture.until_over("bad");
    println!("{entry:?}");
    assert_eq!((entry.outcome, entry.nodes), (Outcome::RolledBack, 0), "{entry:?}");
    assert!(entry.reason.starts_with("logs-2: "), "{entry:?}");
    let last = fixture.last_restart("logs-2");
    assert_eq!((last.id.as_str(), last.outcome), ("bad", Outcome::RolledBack));
    fixture.until_formed();
    let (was, is) = (&before["logs-2"], &fixture.facts()["logs-2"]);
    assert_eq!((was.manager_pid, &was.boot), (is.manager_pid, &is.boot));
    assert_eq!(was.checksum, is.checksum);
    assert_ne!(is.checksum.as_ref(), Some(&bad));
    assert_ne!(was.run, is.run);
    let status = fixture.with("logs-2", |member| member.manager().api.status());
    assert_eq!(status["run"]["config"], "last_good", "{status:#}");
    fixture.until_status("it is on another config than its source", |status| {
        status.report.counts.pending_restart == 1
    });
    // The remedy is the usual one.
    let good = fixture.configure("logs-2", "node.attr.stayput: mended", str::to_owned);
    fixture.ask("mended", "rolling", &["logs-2"]);
    assert_eq!(fixture.until_over("mended").outcome, Outcome::Done);
    assert_eq!(fixture.facts()["logs-2"].checksum.as_ref(), Some(&good));
    fixture.until_formed();
}

/// The manager has accepted the stop and drains when it is frozen. The stop is carried out when it
/// is thawed, after the abort, and then the start that is owed.
fn frozen(fixture: &Fixture) {
    step("a manager that freezes in the stop phase, and is thawed after the abort");
    fixture.policy(&json!({ "drain": "8s" }));
    let before = fixture.facts();
    fixture.ask("frozen", "rolling", &["logs-0"]);
    let socket = fixture.with("logs-0", |member| member.manager().api.clone());
    let stopping = socket.until_state("stopping");
    println!("frozen at sequence {}", stopping["sequence"]);
    fixture.with("logs-0", |member| member.manager().signal(Signal::SIGSTOP));
    fixture.until_status("its manager gives no answer", |status| {
        status.report.counts.unreachable == 1
    });
    // A phase counts from the slot: a short one from the beginning may end before the stop.
    fixture.policy(&json!({ "phaseTimeout": "12s" }));
    let entry = fixture.until_over("frozen");
    println!("{entry:?}");
    let debts = fixture.status().ledger.debts;
    assert_eq!(debts.start.len(), 1, "{debts:?}");
    let degraded = condition(fixture, "Degraded");
    assert_eq!(degraded["status"], "True", "{degraded:#}");
    // Its intent is unknown: it must come back with the config that last worked.
    assert_eq!((entry.outcome, entry.nodes), (Outcome::RolledBack, 0), "{entry:?}");

    fixture.with("logs-0", |member| member.manager().signal(Signal::SIGCONT));
    fixture.until_status("the start is no longer owed", |status| status.ledger.debts.is_empty());
    let last = fixture.last_restart("logs-0");
    assert_eq!((last.id.as_str(), last.outcome), ("frozen", Outcome::RolledBack));
    socket.until_ready();
    fixture.until_formed();
    until("it is not degraded any more", || {
        (condition(fixture, "Degraded")["status"] == "False").then_some(())
    });
    let (was, is) = (&before["logs-0"], &fixture.facts()["logs-0"]);
    assert_eq!((was.manager_pid, &was.boot), (is.manager_pid, &is.boot));
    assert_eq!(was.checksum, is.checksum);
}

/// Two of three nodes refuse their config, so no cluster forms under the new name: every node
/// returns to the old one.
fn half_of_all(fixture: &Fixture) {
    step("a coordinated restart, half of which fails");
    until("each node's config has proved itself, so that it is what the node returns to", || {
        let proven = |name: &str| {
            let status = fixture.with(name, |member| member.manager().api.status());
            status["config"]["last_good"] == status["run"]["checksum"]
        };
        NAMES.iter().all(|name| proven(name)).then_some(())
    });
    fixture.policy(&json!({ "phaseTimeout": "90s", "drain": "0s" }));
    let before = fixture.facts();
    let rename = |text: &str| text.replace("cluster.name: test-", "cluster.name: renamed-");
    fixture.configure("logs-0", "node.attr.stayput: half", rename);
    for name in ["logs-1", "logs-2"] {
        fixture.configure(name, "no.such.setting: true", rename);
    }
    fixture.ask("half", "coordinated", &[]);
    let entry = fixture.until_over("half");
    println!("{entry:?}");
    assert_eq!((entry.outcome, entry.nodes), (Outcome::RolledBack, 0), "{entry:?}");
    fixture.until_formed();
    let after = fixture.facts();
    for name in NAMES {
        let (was, is) = (&before[name], &after[name]);
        assert_eq!((was.manager_pid, &was.boot), (is.manager_pid, &is.boot), "{name}");
        assert_eq!(was.checksum, is.checksum, "{name}");
        assert_ne!(was.ephemeral, is.ephemeral, "{name}");
        assert_eq!(fixture.last_restart(name).outcome, Outcome::RolledBack, "{name}");
    }
    let name = fixture.engine("/_cluster/health")["cluster_name"].clone();
    assert!(name.as_str().is_some_and(|name| name.starts_with("test-")), "{name}");
}
