//! How soon to look again: at once after something was done, never in a hot loop.

use std::time::Duration;

use crate::controller::backoff;
use stayput_restart::{Action, Code, Plan};

/// With the polls in place, what they do not see is looked at this often while it is awaited.
const UNSEEN: Duration = Duration::from_secs(1);
/// What stays blocked is looked at this often at least.
const BLOCKED: Duration = Duration::from_secs(10);
/// Conflicts up to this many in a row are expected: a watch lags, somebody annotates.
const FEW_CONFLICTS: u32 = 3;
/// Looks in a row that may follow news at once although they led to nothing.
const BURST: u32 = 5;
/// Then so much time is between two of them, whatever the news: shards move all the time.
const CALM: Duration = Duration::from_secs(1);

/// What the last passes came to.
#[derive(Debug, Default)]
pub(super) struct Pace {
    failures: u32,
    conflicts: u32,
    /// How often the same was done, or the same was waited for, in a row.
    repeats: u32,
    /// Looks in a row after which nothing was done.
    idle: u32,
    last: Option<Outline>,
}

/// What a plan does, and what it waits for.
type Outline = (Vec<Action>, Vec<(Option<String>, Code)>);

impl Pace {
    /// A pass that failed.
    pub(super) fn failed(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.idle = self.idle.saturating_add(1);
        backoff::pause(self.failures)
    }

    /// Whether it has failed more than once in a row, or met others' writes too often.
    pub(super) fn is_failing(&self) -> bool {
        self.failures > 1 || self.conflicts > FEW_CONFLICTS
    }

    /// How long not to look again, whatever news there are.
    pub(super) fn calm(&self, is_under_way: bool) -> Duration {
        if is_under_way || self.idle <= BURST { Duration::ZERO } else { CALM }
    }

    /// A pass that somebody else's write has overtaken.
    pub(super) fn conflicted(&mut self) -> Duration {
        self.conflicts = self.conflicts.saturating_add(1);
        match self.conflicts.checked_sub(FEW_CONFLICTS) {
            None | Some(0) => Duration::ZERO,
            Some(more) => backoff::pause(more),
        }
    }

    /// A pass that carried out this plan; `acted` says that something outside was changed.
    pub(super) fn done(&mut self, plan: &Plan, acted: bool) -> Duration {
        self.failures = 0;
        self.conflicts = 0;
        let actions =
            plan.actions.iter().filter(|action| !matches!(action, Action::RecordEvent(_)));
        let waiting = plan.waiting.iter().map(|waiting| (waiting.pod.clone(), waiting.code));
        let now = (actions.cloned().collect::<Vec<_>>(), waiting.collect::<Vec<_>>());
        let same = self.last.as_ref() == Some(&now);
        self.repeats = if same { self.repeats.saturating_add(1) } else { 0 };
        self.last = Some(now);
        self.idle = if acted { 0 } else { self.idle.saturating_add(1) };
        let asked = Duration::from_millis(plan.requeue_after);
        if acted {
            // What was done shows at the next look. If it does not, the same is done again: slower.
            return if self.repeats == 0 { Duration::ZERO } else { backoff::pause(self.repeats) };
        }
        if asked > BLOCKED {
            return asked;
        }
        let slower = UNSEEN.saturating_mul(1 + self.repeats / 5);
        asked.max(slower.min(BLOCKED))
    }

    /// Forgets, so that what comes next is looked at with fresh eyes.
    pub(super) fn reset(&mut self) {
        self.repeats = 0;
        self.idle = 0;
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_lead_to_nothing_are_a_second_apart_unless_a_node_is_under_way() {
        let (mut pace, plan) = (Pace::default(), Plan::default());
        for _ in 0..BURST {
            pace.done(&plan, false);
            assert_eq!(pace.calm(false), Duration::ZERO);
        }
        pace.failed();
        assert_eq!(pace.calm(false), CALM);
        assert_eq!(pace.calm(true), Duration::ZERO);
        pace.done(&plan, true);
        assert_eq!(pace.calm(false), Duration::ZERO);
    }
}
