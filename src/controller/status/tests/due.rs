use crate::status::*;
use serde_json::json;
use stayput_restart::{Counts, Time};

#[test]
fn what_concerns_the_whole_cluster_is_written_sooner_than_a_detail() {
    let written = SearchClusterStatus { observed_generation: Some(1), ..Default::default() };
    let due = |report: &Report, generation, since| {
        due_in(Some(&written), report, Some(generation), Some(Duration::from_secs(since)))
    };
    let same = Report::default();
    assert_eq!(due_in(None, &same, Some(1), None), Some(Duration::ZERO));
    assert_eq!(due(&same, 1, 0), None);
    assert_eq!(due(&same, 2, 1), Some(Duration::from_secs(4)));
    let blocked = Report { blocked: Some("quorum".into()), ..Report::default() };
    assert_eq!(due(&blocked, 1, 0), Some(SUMMARY_INTERVAL));
    let detail = Report { message: Some("two of three".into()), ..Report::default() };
    assert_eq!(due(&detail, 1, 10), Some(Duration::from_secs(20)));
    assert_eq!(due(&detail, 1, 31), Some(Duration::ZERO));
}

#[test] // proves RESTART-146
fn what_blocks_a_node_is_written_soon_only_while_the_restart_is_blocked() {
    let report = |blocked: Option<&str>, rule: &str| {
        let row = json!({ "name": "logs-0", "blockedBy": rule });
        let nodes = vec![serde_json::from_value(row).expect("a row")];
        Report { blocked: blocked.map(str::to_owned), nodes, ..Report::default() }
    };
    let changed = |blocked: Option<&str>| {
        is_summary_changed(&report(blocked, "settled"), &report(blocked, "unreplicated_index"))
    };
    assert!(changed(Some("settled")));
    assert!(!changed(None), "others wait for the one that is under way");
}

#[test] // proves RESTART-145
fn a_node_that_goes_and_comes_back_in_a_restart_is_a_detail() {
    let report = |progress: Option<&str>, color: &str, pending_restart| Report {
        progress: progress.map(str::to_owned),
        counts: Counts { pending_restart, ..Counts::default() },
        conditions: vec![Condition {
            kind: "Available".into(),
            status: "True".into(),
            reason: color.into(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: Time(0),
        }],
        ..Report::default()
    };
    let changed = |before, now| is_summary_changed(&before, &now);
    let under_way = Some("rolling 1/3");
    assert!(!changed(report(under_way, "Green", 2), report(under_way, "Yellow", 1)));
    assert!(changed(report(None, "Green", 2), report(None, "Yellow", 2)));
    assert!(changed(report(None, "Green", 2), report(None, "Green", 1)));
    let unavailable = Report {
        conditions: vec![Condition {
            status: "False".into(),
            ..report(under_way, "Red", 2).conditions[0].clone()
        }],
        ..report(under_way, "Red", 2)
    };
    assert!(changed(report(under_way, "Green", 2), unavailable), "that is no detail");
}
