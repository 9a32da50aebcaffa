//! Time until a SearchCluster is reconciled again: zero after an action, but never a hot loop. Pure: time
//! enters as durations.

use std::time::Duration;

use stayput_restart::{Action, Code, Ledger, Plan, Snapshot, needs_engine};

/// Interval of observations; managers and engine report most changes before by themselves.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Longest interval of observations while a SearchCluster is blocked for the same reason.
const BLOCKED_INTERVAL: Duration = Duration::from_secs(10);
/// Number of conflicts in a row that are expected: a watch lags, a person annotates.
const EXPECTED_CONFLICTS: u32 = 3;
/// Number of reconciles in a row that may follow changes at once although they led to no action.
const IDLE_BURST: u32 = 5;
/// Least time between two reconciles after [`IDLE_BURST`]: shards change all the time.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);
/// Longest pause because reading the engine takes long: it may also be a node that hangs.
const MAX_READING_PAUSE: Duration = Duration::from_secs(2);
/// Longest pause because reading the engine takes long, while a member is under way: the next look is at a
/// change that the engine or a manager reports, and a node waits for it.
const MAX_READING_PAUSE_UNDER_WAY: Duration = Duration::from_millis(100);
/// Interval of observing the engine after a restart, while a late request of ours may still arrive.
const LATE_REQUEST_INTERVAL: Duration = Duration::from_secs(10);
/// Longest pause after looks or actions that failed, while a restart is under way: a node may be missing
/// until the next look, and one action that fails must not hold up the steps of other nodes. That is one
/// request in two seconds; a look that succeeds sends more, each second.
const RESTARTING_BACK_OFF: Duration = Duration::from_secs(2);
/// Interval after an observation that had no time to ask every manager.
const UNASKED_MANAGERS_INTERVAL: Duration = Duration::from_secs(1);

/// Events to wait for after a reconcile.
#[derive(Debug, Default)]
pub(super) struct Next {
    /// Longest time to wait.
    pub(super) after: Duration,
    /// The snapshot, if the observation succeeded.
    pub(super) seen: Option<Box<Snapshot>>,
    /// The last written ledger, if the observation failed.
    pub(super) unseen: Option<Box<Ledger>>,
}

impl Next {
    pub(super) fn after(after: Duration) -> Self {
        Self { after, ..Self::default() }
    }

    /// After a look that failed: the members in the ledger are still under way.
    pub(super) fn failed(after: Duration, ledger: Option<Ledger>) -> Self {
        Self { after, seen: None, unseen: ledger.map(Box::new) }
    }

    /// The newest known ledger.
    pub(super) fn ledger(&self) -> Option<&Ledger> {
        let seen = self.seen.as_ref().map(|seen| &seen.ledger);
        seen.or(self.unseen.as_deref())
    }

    /// True if a member is under way.
    pub(super) fn is_under_way(&self) -> bool {
        self.ledger().is_some_and(|ledger| ledger.under_way().next().is_some())
    }
}

/// Results of the last reconciles.
#[derive(Debug, Default)]
pub(super) struct Requeue {
    failures: u32,
    conflicts: u32,
    /// Number of repetitions in a row, of the same actions or the same waits.
    repeats: u32,
    /// Number of reconciles in a row without an action.
    idle: u32,
    /// True if the last plan had an action that the one before had not.
    acted_anew: bool,
    last: Option<Outline>,
}

/// Actions of a plan, and the pod and code of each wait.
type Outline = (Vec<Action>, Vec<(Option<String>, Code)>);

impl Requeue {
    /// Pause after a look that failed, or actions of which one failed.
    pub(super) fn after_failure(&mut self, ledger: Option<&Ledger>) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.idle = self.idle.saturating_add(1);
        self.acted_anew = false;
        let after = pause(self.failures);
        if ledger.is_some_and(|ledger| ledger.restart.is_some()) {
            after.min(RESTARTING_BACK_OFF)
        } else {
            after
        }
    }

    /// Pause after a write that another client has overtaken.
    pub(super) fn after_conflict(&mut self) -> Duration {
        self.conflicts = self.conflicts.saturating_add(1);
        match self.conflicts.checked_sub(EXPECTED_CONFLICTS) {
            None | Some(0) => Duration::ZERO,
            Some(more) => pause(more),
        }
    }

    /// Pause after a plan was carried out; `acted` is true if that changed anything outside.
    pub(super) fn after_plan(&mut self, plan: &Plan, acted: bool) -> Duration {
        self.failures = 0;
        self.conflicts = 0;
        let actions =
            plan.actions.iter().filter(|action| !matches!(action, Action::RecordEvent(_)));
        let waiting = plan.waiting.iter().map(|waiting| (waiting.pod.clone(), waiting.code));
        let now = (actions.map(without_time).collect::<Vec<_>>(), waiting.collect::<Vec<_>>());
        let same = self.last.as_ref() == Some(&now);
        self.repeats = if same { self.repeats.saturating_add(1) } else { 0 };
        self.last = Some(now);
        self.idle = if acted { 0 } else { self.idle.saturating_add(1) };
        self.acted_anew = acted && !same;
        let planned = Duration::from_millis(plan.requeue_after);
        if acted {
            // The next observation shows the effect. If it does not, the same action is repeated: slower.
            return if self.repeats == 0 { Duration::ZERO } else { pause(self.repeats) };
        }
        if planned > BLOCKED_INTERVAL {
            return planned;
        }
        let slower = POLL_INTERVAL.saturating_mul(1 + self.repeats / 5);
        planned.max(slower.min(BLOCKED_INTERVAL))
    }

    /// Forgets the last plan: after a ledger was written, the next one is compared with none.
    pub(super) fn after_ledger(&mut self) {
        self.repeats = 0;
        self.idle = 0;
        self.last = None;
    }

    /// True if actions failed more than once in a row, or met more conflicts than expected.
    pub(super) fn is_failing(&self) -> bool {
        self.failures > 1 || self.conflicts > EXPECTED_CONFLICTS
    }

    /// Least time until the next reconcile, whatever changes before: as long as the engine took for its last
    /// answers, so that a large cluster is not busy with ours, and a second after reconciles that led to
    /// nothing. Much less while a member is under way, and zero after a new action: these are few, and a node
    /// waits for the next.
    pub(super) fn least_pause(&self, is_under_way: bool, reading: Duration) -> Duration {
        let idle =
            if is_under_way || self.idle <= IDLE_BURST { Duration::ZERO } else { IDLE_INTERVAL };
        let longest = match (self.acted_anew, is_under_way) {
            (true, _) => Duration::ZERO,
            (false, true) => MAX_READING_PAUSE_UNDER_WAY,
            (false, false) => MAX_READING_PAUSE,
        };
        idle.max(reading.min(longest))
    }
}

/// The action without the time left of a drain, which is less at each look.
fn without_time(action: &Action) -> Action {
    let mut action = action.clone();
    if let Action::EndDrain { drain, .. } = &mut action {
        *drain = 0;
    }
    action
}

/// Bounds the time until the next reconcile by observations and writes that are due sooner.
pub(super) fn bounded(
    after: Duration,
    snapshot: &Snapshot,
    has_unasked_managers: bool,
    report_due: Option<Duration>,
) -> Duration {
    let late = may_receive_late_request(snapshot).then_some(LATE_REQUEST_INTERVAL);
    let unasked = has_unasked_managers.then_some(UNASKED_MANAGERS_INTERVAL);
    [late, unasked, report_due].into_iter().flatten().fold(after, Duration::min)
}

/// True if the engine is observed only because a restart ended a short time ago.
fn may_receive_late_request(snapshot: &Snapshot) -> bool {
    let ledger = &snapshot.ledger;
    ledger.restart.is_none()
        && ledger.kept_stopped.is_empty()
        && snapshot.cluster.stopped.is_empty()
        && needs_engine(snapshot)
}

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// Pause after this number of failures in a row: half a second, doubled each time, 30 s at most.
pub(super) fn pause(failures: u32) -> Duration {
    let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST.saturating_mul(doubled).min(LONGEST)
}

#[cfg(test)]
mod tests;
