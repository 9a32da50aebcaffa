//! Decides when to write a report although the ledger does not change: rarely, because it is for people.

use std::time::Duration;

use stayput_kube_access::cluster::SearchClusterStatus;
use stayput_restart::{Condition, Report};

/// Least time between two writes of which the second changes the summary of the cluster.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(5);
/// Least time between two writes of which the second changes only details.
const DETAIL_INTERVAL: Duration = Duration::from_secs(30);

/// Time until this report has to be written, if it differs from `before`. `since_last` is the time since the
/// last write of the status.
pub(super) fn due_in(
    before: Option<&SearchClusterStatus>,
    report: &Report,
    generation: Option<i64>,
    since_last: Option<Duration>,
) -> Option<Duration> {
    // The first status adopts requests that exist already, without acting on them: write it at once.
    let Some(before) = before else { return Some(Duration::ZERO) };
    let interval =
        if before.observed_generation != generation || is_summary_changed(&before.report, report) {
            SUMMARY_INTERVAL
        } else if before.report != *report {
            DETAIL_INTERVAL
        } else {
            return None;
        };
    Some(since_last.map_or(Duration::ZERO, |since| interval.saturating_sub(since)))
}

fn is_summary_changed(before: &Report, now: &Report) -> bool {
    // Every node that goes and comes back changes the pending count and the color. The ledger is written for
    // its slot and its end, and these writes show both.
    let in_a_restart = before.progress.is_some() && now.progress.is_some();
    let conditions = |report: &Report| -> Vec<(String, String, String)> {
        let reason = |one: &Condition| {
            if in_a_restart && one.kind == "Available" { String::new() } else { one.reason.clone() }
        };
        let all = report.conditions.iter();
        all.map(|one| (one.kind.clone(), one.status.clone(), reason(one))).collect()
    };
    // While something blocks, people look at the reasons why nodes wait.
    let blocked_by = |report: &Report| -> Vec<(String, String)> {
        let rows = report.nodes.iter();
        rows.filter_map(|node| Some((node.name.clone(), node.blocked_by.clone()?))).collect()
    };
    let pending = |report: &Report| (report.counts.pending_restart, report.counts.pending_update);
    before.phase != now.phase
        || before.blocked != now.blocked
        || (now.blocked.is_some()
            && (before.message != now.message || blocked_by(before) != blocked_by(now)))
        || before.counts.down != now.counts.down
        || (!in_a_restart && pending(before) != pending(now))
        || conditions(before) != conditions(now)
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
