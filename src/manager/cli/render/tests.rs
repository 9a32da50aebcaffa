//! The complete text that users read.

use super::*;

fn status(json: serde_json::Value) -> Status {
    serde_json::from_value(json).expect("a status")
}

fn full() -> Status {
    status(serde_json::json!({
        "manager": {
            "version": "0.1.0", "boot_id": "b7f1", "pid": 1, "since": "2026-11-14T09:00:00Z",
            "durable": false, "pod": {"namespace": "search", "name": "logs-2", "uid": null}
        },
        "cursor": "b7f1:17", "desired": "running", "state": "running", "ready": false,
        "since": "2026-11-21T08:30:00Z", "sequence": 42,
        "run": {
            "id": "6f2c", "pid": 23, "started_at": "2026-11-21T08:29:00Z",
            "checksum": "sha256:aa", "config": "mounted"
        },
        "archive": {"path": "/usr/share/opensearch/warm.jsa", "used": false},
        "starts": 4,
        "last_exit": {
            "run": "51ab", "code": null, "signal": 9, "reason": "killed", "took_ms": 120_812,
            "ran_ms": 93_784_000_u64, "at": "2026-11-21T08:28:59Z",
            "stragglers": [{"pid": 71, "command": "performance-analyzer-agent-cli"}],
            "strangers": [{"pid": 80, "command": "/bin/sh"}]
        },
        "last_request": {
            "sequence": 42, "kind": "start", "accepted": true, "by": "uid:0",
            "at": "2026-11-21T08:29:00Z"
        },
        "config": {
            "checksum": "sha256:bb", "drift": true,
            "files": [
                {"path": "elasticsearch.yml", "sha256": "11", "live": false},
                {"path": "users", "sha256": "22", "live": true}
            ],
            "last_good": "sha256:aa", "errors": ["jvm.options: a subPath mount never changes"],
            "observed_at": null
        },
        "reason": {"code": "not_ready", "message": "the probe answers 503"}
    }))
}

#[test]
fn a_full_status() {
    let now = humantime::parse_rfc3339("2026-11-21T09:00:00Z").expect("a time");
    assert_eq!(
        super::status(&full(), now),
        "\
state         running, NOT READY
since         2026-11-21T08:30:00Z (30m ago)
desired       running
reason        the probe answers 503 (not_ready)
pod           search/logs-2, uid not known
run           6f2c, pid 23
started       2026-11-21T08:29:00Z (31m ago)
runs with     sha256:aa (mounted)
archive       /usr/share/opensearch/warm.jsa, not used: the engine starts slower
mounted       sha256:bb (1 file, 1 live)
drift         YES: the engine runs with another config; restart it to use the mounted one
last good     sha256:aa
config error  jvm.options: a subPath mount never changes
last exit     signal 9 (killed), took 2m 812ms, had run 1day 2h
              2026-11-21T08:28:59Z (31m 1s ago)
              had to end pid 71: performance-analyzer-agent-cli
              left alone pid 80: /bin/sh
last request  start #42, accepted, by uid:0
              2026-11-21T08:29:00Z (31m ago)
starts        4
sequence      42
manager       stayput 0.1.0, pid 1
              2026-11-14T09:00:00Z (7days ago)
              NOT DURABLE: the last request would not survive a crash now
"
    );
}

#[test]
fn a_bare_status_has_no_empty_facts() {
    let mut bare = full();
    bare.manager.pod.name = None;
    bare.manager.durable = true;
    (bare.run, bare.last_exit, bare.last_request) = (None, None, None);
    (bare.config, bare.archive, bare.reason) = (None, None, None);
    bare.since = "not a time".into();
    let now = humantime::parse_rfc3339("2026-11-14T08:59:00Z").expect("a time");
    assert_eq!(
        super::status(&bare, now),
        "\
state         running, NOT READY
since         not a time
desired       running
starts        4
sequence      42
manager       stayput 0.1.0, pid 1
              2026-11-14T09:00:00Z (in 1m)
"
    );
}

#[test]
fn summaries_tell_what_is_odd() {
    let mut status = full();
    assert_eq!(
        summary(&status),
        "running, NOT READY, pid 23, another config is mounted: the probe answers 503"
    );
    status.state = State::Failed;
    status.run = None;
    status.config = None;
    status.reason = None;
    assert_eq!(summary(&status), "failed, desired running, ended with signal 9 (killed)");
    status.state = State::Stopped;
    status.last_exit = None;
    assert_eq!(summary(&status), "stopped, desired running");
}

#[test]
fn a_change_is_printed_once() {
    let mut out = Vec::new();
    let mut changes = ChangePrinter::default();
    let mut status = full();
    changes.print(&status, &mut out).expect("memory");
    status.cursor.0.push('8');
    changes.print(&status, &mut out).expect("memory");
    status.ready = Some(true);
    changes.print(&status, &mut out).expect("memory");
    assert_eq!(String::from_utf8(out).expect("UTF-8").lines().count(), 2);
}

#[test]
fn drift_on_the_last_good_config_does_not_advise_a_restart_onto_the_bad_one() {
    let mut status = full();
    status.run.as_mut().expect("a run").config = ConfigChoice::LastGood;
    let page = super::status(&status, SystemTime::now());
    let drift = page.lines().find(|line| line.starts_with("drift")).expect("a line");
    assert!(drift.contains("last good") && drift.contains("repair the mounted one"), "{drift}");
}
