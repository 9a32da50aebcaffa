//! The SearchCluster as JSON: reading and writing.

use serde_json::json;
use stayput_restart::{Ledger, MAX_HANDLED, Member, MemberStep, Report, Request, Restart, Time};

use crate::cluster::spec::{SearchCluster, SearchClusterStatus};
use crate::cluster::tests::{read, smallest};

#[test]
fn a_status_survives_a_round_trip_with_report_and_ledger_side_by_side() {
    let member = Member { pod_uid: "u".into(), node: "logs-0".into(), ..Member::default() };
    let restart = Restart {
        request: Request { id: "a".into(), ..Request::default() },
        started: Time(1_000),
        began: Some(Time(1_500)),
        stuck_since: None,
        direction: Default::default(),
        ending: None,
        once: Default::default(),
        frozen: Some(Time(2_000)),
        members: vec![Member {
            step: MemberStep::Restarting,
            stop_sequence: 7,
            start_sequence: 8,
            ..member
        }],
    };
    let before = json!({
        "id": "before", "strategy": "rolling", "outcome": "done", "started": "2026-11-21T03:08:00Z",
        "seconds": 100, "nodes": 3,
    });
    let before = serde_json::from_value(before).unwrap();
    let ledger = Ledger {
        restart: Some(restart),
        handled: (0..MAX_HANDLED).map(|n| n.to_string()).collect(),
        history: vec![before],
        ..Ledger::default()
    };
    let report = Report { phase: "Restarting".into(), ..Report::default() };
    let status = SearchClusterStatus { observed_generation: Some(3), report, ledger };
    let written = serde_json::to_value(&status).unwrap();
    assert_eq!(written["phase"], "Restarting");
    assert_eq!(written["history"][0]["id"], "before");
    let ledger = &written["ledger"];
    assert_eq!(ledger.get("history"), None, "it is written once");
    assert_eq!(ledger["restart"]["members"][0]["stopSequence"], 7);
    assert_eq!(ledger["restart"]["frozen"], "1970-01-01T00:00:02.000Z");
    assert_eq!(serde_json::from_value::<SearchClusterStatus>(written).unwrap(), status);
}

#[test]
fn a_status_that_holds_nothing_is_a_status() {
    let mut object = smallest();
    object["status"] = json!({});
    assert_eq!(read(object).status, Some(SearchClusterStatus::default()));
    assert_eq!(read(smallest()).status, None);
}

#[test]
fn a_spec_survives_a_round_trip() {
    let read_once = read(smallest());
    let written = serde_json::to_value(&read_once).unwrap();
    assert_eq!(serde_json::from_value::<SearchCluster>(written).unwrap(), read_once);
}
