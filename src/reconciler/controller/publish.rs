//! When the status is written although the ledger does not change: for people, and therefore rarely.

use std::time::Duration;

use tokio::time::Instant;

use crate::cluster::SearchClusterStatus;
use stayput_restart::Report;

/// Between two writes that say something new about the cluster as a whole.
const NEWS: Duration = Duration::from_secs(5);
/// Between two writes that only say it in more detail.
const DETAIL: Duration = Duration::from_secs(30);

/// Keeps the time of the last write.
#[derive(Debug, Default)]
pub(super) struct Publisher {
    last: Option<Instant>,
}

impl Publisher {
    /// The status was written just now.
    pub(super) fn note(&mut self) {
        self.last = Some(Instant::now());
    }

    /// How long until this should be written; none if `before` says the same.
    pub(super) fn due_in(
        &self,
        before: Option<&SearchClusterStatus>,
        report: &Report,
        generation: Option<i64>,
    ) -> Option<Duration> {
        // Without a status, what is asked would be adopted and not acted on: at once.
        let Some(before) = before else { return Some(Duration::ZERO) };
        let gap = if before.observed_generation != generation || is_news(&before.report, report) {
            NEWS
        } else if before.report != *report {
            DETAIL
        } else {
            return None;
        };
        Some(self.last.map_or(Duration::ZERO, |last| gap.saturating_sub(last.elapsed())))
    }
}

fn is_news(before: &Report, now: &Report) -> bool {
    let conditions = |report: &Report| -> Vec<(String, String, String)> {
        let all = report.conditions.iter();
        all.map(|one| (one.kind.clone(), one.status.clone(), one.reason.clone())).collect()
    };
    before.phase != now.phase
        || before.blocked != now.blocked
        || (now.blocked.is_some() && before.message != now.message)
        || before.counts.pending_restart != now.counts.pending_restart
        || conditions(before) != conditions(now)
}
