//! The remaining time of a restart, estimated from the finished nodes.

use super::{Direction, MemberStep, Restart, Strategy, Time};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// Factor by which a node may take longer than the slowest finished node before there is no estimate.
const SLOWER_THAN_ALL: u64 = 3;

/// An estimate for people. Nodes of one cluster differ, so no decision uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Estimate {
    /// Remaining time, in milliseconds.
    pub(super) left: u64,
    /// Number of nodes that were restarted.
    pub(super) done: usize,
    /// Number of nodes that were restarted or are still to be restarted.
    pub(super) nodes: usize,
}

impl Estimate {
    /// Estimates from the ledger alone, so that the estimate survives a restart of the controller.
    /// `None` before the first node is done, when no further node is restarted, in a coordinated
    /// restart, and while a node takes far longer than any before it.
    pub(super) fn of(restart: &Restart, now: Time) -> Option<Self> {
        let goes_on = restart.ending.is_none() && restart.direction != Direction::Back;
        if !goes_on || restart.request.strategy == Strategy::Coordinated {
            return None;
        }
        let mut last = restart.began?;
        let began = last;
        let is_over = |step| step == MemberStep::Finished;
        let to_come = restart.members.iter().filter(|member| !is_over(member.step)).count();
        // A member without a sequence was withdrawn before it was stopped.
        let ends = restart.members.iter().filter(|one| is_over(one.step) && one.stop_sequence > 0);
        let mut ends: Vec<Time> = ends.map(|member| member.since).collect();
        if ends.is_empty() || to_come == 0 {
            return None;
        }
        ends.sort_unstable();
        let mut longest = 0;
        for end in &ends {
            longest = longest.max(end.since(last));
            last = *end;
        }
        let waited = now.since(last);
        if waited > longest.saturating_mul(SLOWER_THAN_ALL).max(MINUTE) {
            return None;
        }
        let count = |nodes: usize| u64::try_from(nodes).unwrap_or(u64::MAX);
        let all = last.since(began).saturating_mul(count(to_come)) / count(ends.len());
        Some(Self {
            left: all.saturating_sub(waited.min(longest)),
            done: ends.len(),
            nodes: ends.len() + to_come,
        })
    }

    /// The remaining time in words: `about 12 minutes left`. The steps are wider for longer times,
    /// because the estimate is not precise and the status should not be written again all the time.
    pub(super) fn left(self) -> String {
        let (step, unit, name) = if self.left <= MINUTE {
            return "less than a minute left".into();
        } else if self.left <= 10 * MINUTE {
            (1, MINUTE, "minutes")
        } else if self.left <= HOUR {
            (5, MINUTE, "minutes")
        } else if self.left <= 3 * HOUR {
            (15, MINUTE, "minutes")
        } else if self.left <= 2 * DAY {
            (1, HOUR, "hours")
        } else {
            (1, DAY, "days")
        };
        let count = self.left.div_ceil(unit).next_multiple_of(step);
        format!("about {count} {name} left")
    }
}

/// Prints `about 12 minutes left, estimated from 3 of 12 nodes`.
impl std::fmt::Display for Estimate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { done, nodes, .. } = self;
        write!(formatter, "{}, estimated from {done} of {nodes} nodes", self.left())
    }
}

#[cfg(test)]
mod tests;
