//! The times that deadlines count from. A leader whose clock was ahead has written some that are not over yet.

use super::{HistoryEntry, Ledger, MemberUpdate, RemovedExclusion, StartDebt};
use crate::Time;

/// When a restart ended, by its entry in the history.
pub(crate) const fn end_of(entry: &HistoryEntry) -> Time {
    entry.started.plus(entry.seconds.saturating_mul(1000))
}

impl Ledger {
    /// True if one of these times is later than `latest`.
    pub(crate) fn has_times_after(&self, latest: Time) -> bool {
        let is_ahead = |at: Option<Time>| at.is_some_and(|at| at > latest);
        let of_update = |update: &MemberUpdate| [update.late_since, update.hindered_since];
        let of_restart = self.restart.iter().flat_map(|one| {
            [Some(one.started), one.began, one.stuck_since, one.frozen].into_iter()
        });
        let of_members = self.members().any(|one| {
            [Some(one.since), one.absent_since, one.silent_since].into_iter().any(is_ahead)
                || one.update.iter().flat_map(|update| of_update(update)).any(is_ahead)
        });
        let of_starts = self.debts.start.iter().flat_map(|debt| [debt.since, debt.absent_since]);
        let of_exclusions = self.removed_exclusions.iter().map(|one| Some(one.at));
        let of_all = [self.still_shown_since, self.history.last().map(end_of)];
        of_members || of_restart.chain(of_starts).chain(of_exclusions).chain(of_all).any(is_ahead)
    }

    /// Sets each of these times that is later than `latest` to `now`.
    pub(super) fn correct_times(&mut self, latest: Time, now: Time) {
        self.change_times(|at| {
            if *at > latest {
                *at = now;
            }
        });
        if let Some(last) = self.history.last_mut().filter(|last| end_of(last) > latest) {
            last.started = Time(now.0.saturating_sub(last.seconds.saturating_mul(1000)));
        }
    }

    /// Moves these times with a clock that has jumped forward. The history stays: people read it.
    pub(super) fn move_times(&mut self, jumped: u64) {
        self.change_times(|at| *at = at.plus(jumped));
    }

    fn change_times(&mut self, one: impl Fn(&mut Time)) {
        let all = |times: &mut [&mut Option<Time>]| {
            times.iter_mut().filter_map(|at| at.as_mut()).for_each(&one);
        };
        if let Some(restart) = &mut self.restart {
            one(&mut restart.started);
            all(&mut [&mut restart.began, &mut restart.stuck_since, &mut restart.frozen]);
            for member in &mut restart.members {
                one(&mut member.since);
                all(&mut [&mut member.absent_since, &mut member.silent_since]);
                if let Some(update) = &mut member.update {
                    all(&mut [&mut update.late_since, &mut update.hindered_since]);
                }
            }
        }
        for StartDebt { since, absent_since, .. } in &mut self.debts.start {
            all(&mut [since, absent_since]);
        }
        for RemovedExclusion { at, .. } in &mut self.removed_exclusions {
            one(at);
        }
        all(&mut [&mut self.still_shown_since]);
    }
}
