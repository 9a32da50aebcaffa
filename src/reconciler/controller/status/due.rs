//! When a report is written although the ledger does not change: rarely, because it is for people.

use std::time::Duration;

use crate::cluster::SearchClusterStatus;
use stayput_restart::Report;

/// Least time between two writes of which the second changes what is known of the whole cluster.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(5);
/// Least time between two writes of which the second changes only details.
const DETAIL_INTERVAL: Duration = Duration::from_secs(30);

/// How long until this report has to be written; none if `before` is the same. `since_last` is the
/// time since the last write of the status.
pub(super) fn due_in(
    before: Option<&SearchClusterStatus>,
    report: &Report,
    generation: Option<i64>,
    since_last: Option<Duration>,
) -> Option<Duration> {
    // A request that is there before the first status is adopted and not acted on: write at once.
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
    let conditions = |report: &Report| -> Vec<(String, String, String)> {
        let all = report.conditions.iter();
        all.map(|one| (one.kind.clone(), one.status.clone(), one.reason.clone())).collect()
    };
    before.phase != now.phase
        || before.blocked != now.blocked
        || (now.blocked.is_some() && before.message != now.message)
        || before.counts.down != now.counts.down
        || before.counts.pending_restart != now.counts.pending_restart
        || before.counts.pending_update != now.counts.pending_update
        || conditions(before) != conditions(now)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
